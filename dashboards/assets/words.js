// Numbers and times as people read them, in the time zone of the reader; service/copy.py says what it can say alike.
// React leaves elements with data-since, data-clock and the like empty: this fills them, and keeps them true.
(() => {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const UNITS = { m: ["minute", "minutes"], h: ["hour", "hours"], d: ["day", "days"] };
  const two = (number) => String(number).padStart(2, "0");
  let ahead = 0;

  const words = {
    // Unix seconds by the clock of the service: the reader's may be wrong.
    now: () => Date.now() / 1000 + ahead,
    synchronize: (at) => { ahead = at - Date.now() / 1000; },

    age(seconds) {
      const left = Math.max(0, Math.floor(seconds));
      if (left < 60) return `${left} s`;
      const minutes = Math.floor(left / 60);
      if (minutes < 60) return `${minutes} min`;
      const hours = Math.floor(minutes / 60);
      if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
      return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
    },

    clock(at, seconds = false) {
      const moment = new Date(at * 1000);
      const today = new Date(words.now() * 1000);
      const time = `${two(moment.getHours())}:${two(moment.getMinutes())}${seconds ? `:${two(moment.getSeconds())}` : ""}`;
      return moment.toDateString() === today.toDateString()
        ? time
        : `${moment.getDate()} ${MONTHS[moment.getMonth()]} ${time}`;
    },

    range(start, end) {
      const relative = /^now-(\d+)([mhd])$/.exec(start);
      if (relative && end === "now") {
        const [count, unit] = relative[1] === "1" && relative[2] === "d" ? ["24", "h"] : [relative[1], relative[2]];
        return `Last ${count} ${UNITS[unit][count === "1" ? 0 : 1]}`;
      }
      return `${words.moment(start)} – ${words.moment(end)}`;
    },

    // What an end of a range says: as typed where it is relative, else the time.
    moment(text) {
      const seconds = words.seconds(text);
      return text.startsWith("now") || Number.isNaN(seconds) ? text : words.clock(seconds);
    },

    // Unix seconds of an end of a range.
    seconds(text) {
      const relative = /^now(?:-(\d+)([smhdw]))?$/.exec(text);
      if (relative) {
        const unit = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[relative[2]] ?? 0;
        return words.now() - Number(relative[1] ?? 0) * unit;
      }
      return /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
    },

    whole: (number) => Math.round(number).toLocaleString("en-US"),
    rate: (number) => (Math.round(number) < 10000 ? words.whole(number) : `${(number / 1000).toPrecision(3)} k`),

    // Every element below (or at) root that wants words.
    fill(root = document) {
      for (const element of root.querySelectorAll("[data-since], [data-clock]")) {
        const since = element.dataset.since;
        write(element, since === undefined ? words.clock(Number(element.dataset.clock)) : words.age(words.now() - since));
      }
    },
  };

  // Unchanged text is left alone, so that a selection survives.
  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  window.draftgauge = Object.assign(window.draftgauge ?? {}, { words, write });
})();
