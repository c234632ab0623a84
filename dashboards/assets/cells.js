// How cells of the fleet table are drawn. Rows are as dashboards/components/rows.py sends them; names of targets and
// categories come from outside, so everything is text of React, never markup.
(() => {
  const app = (window.draftgauge = window.draftgauge ?? {});
  const cells = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions ?? {});
  const functions = (window.dashAgGridFunctions = window.dashAgGridFunctions ?? {});
  const draw = (...parts) => window.React.createElement(...parts);

  const NOTHING = { idle: "idle", off: "off" };
  const TICKS = {
    o: { name: "ok", height: 12, words: "OK" },
    n: { name: "notice", height: 14, words: "notice" },
    w: { name: "warning", height: 17, words: "warning" },
    c: { name: "critical", height: 22, words: "critical" },
    p: { name: "pending", height: 14, words: "pending" },
    i: { name: "idle", height: 4, words: "idle" },
    "-": { name: "no-data", height: 2, words: "no data" },
    f: { name: "off", height: 6, words: "no speculation" },
  };
  const PITCH = 5;
  const TALLEST = 22;

  // The part of a row that a column shows, as one value: the grid draws a cell again where it differs.
  functions.rowPart = (row, column) => {
    const parts = {
      order: [row.order],
      state: [row.s, row.w],
      target: [row.n, row.a],
      step: [row.p, row.pb],
      output: [row.o],
      strip: [row.h, row.h0],
      card: [row.s, row.w, row.n, row.t, row.tb, row.p, row.h, row.pb],
    };
    return column === "order" ? row.order : JSON.stringify(parts[column] ?? [row[column], row[`${column}b`], row.s]);
  };

  // The name of a group goes over all columns.
  functions.columnSpan = (row) => (row.members === undefined ? 1 : 99);

  const Icon = (name) => draw("i", { className: `icon icon-${name}`, "aria-hidden": true });
  const None = () => draw("span", { className: "none" }, draw("span", { className: "visually-hidden" }, "no data"));

  const State = (row) =>
    draw("span", { className: `state state-${row.s}` }, Icon(app.fleet.icon(row.s)), draw("span", null, row.w));

  const Figure = (row) =>
    row.t ? row.t[0].toFixed(2) : (NOTHING[row.s] ?? "no data");

  const evidence = (steps) => (steps > 0 ? Math.min(22, Math.max(3, 6.5 * (Math.log10(steps) - 1))) : 0);

  const StepTime = (row) => {
    if (!row.p) return null;
    const [milliseconds, ratio] = row.p;
    const times = row.pb > 0 ? draw("span", { className: "times" }, `×${ratio.toFixed(1)}`) : null;
    return [milliseconds.toFixed(1), times];
  };

  const runs = (strip) => strip.match(/(.)\1*/g) ?? [];

  // "48 ticks of 5 min: OK, then critical since 11:42"
  const stripWords = (row, tick) => {
    if (!row.h) return "no data";
    const found = runs(row.h);
    const last = found.at(-1);
    const since = row.h0 + (row.h.length - last.length) * tick;
    const words = [...new Set(found.slice(0, -1).map((run) => TICKS[run[0]].words))].slice(-3);
    const end = `${TICKS[last[0]].words}${found.length > 1 ? ` since ${app.words.clock(since)}` : ""}`;
    return `${row.h.length} ticks of ${app.words.age(tick)}: ${[...words, end].join(", then ")}`;
  };

  // A path a state, since a rectangle a tick would be thousands of them.
  const Strip = (row) => {
    const paths = {};
    [...row.h].forEach((letter, index) => {
      const { name, height } = TICKS[letter];
      paths[name] = `${paths[name] ?? ""}M${index * PITCH + 0.7} ${TALLEST}v-${height}h3.6v${height}z`;
    });
    return draw(
      "svg",
      {
        className: "strip",
        role: "img",
        "aria-label": stripWords(row, app.fleet.tick),
        viewBox: `0 0 ${row.h.length * PITCH} ${TALLEST}`,
        preserveAspectRatio: "none",
      },
      Object.entries(paths).map(([name, d]) => draw("path", { key: name, className: `tick-${name}`, d })),
    );
  };

  const Group = (row) =>
    draw("span", { className: "group-row" }, draw("b", null, row.title), draw("span", null, row.members));

  cells.StateCell = ({ data }) => (data.members === undefined ? State(data) : Group(data));
  cells.TargetCell = ({ data }) =>
    draw("span", { className: "target" }, draw("b", null, data.n), draw("span", { className: "about" }, data.a));
  cells.OutputCell = ({ data }) => (data.o === null ? None() : draw("span", { className: "num" }, app.words.rate(data.o)));
  cells.StripCell = ({ data }) => (data.h ? Strip(data) : null);

  cells.StepCell = ({ data }) =>
    data.p ? draw("span", { className: `heat heat${data.pb}` }, draw("span", { className: "num" }, StepTime(data))) : None();

  cells.HeatCell = ({ data, column }) => {
    const name = column.getColId();
    const figures = data[name];
    if (!figures) return name === "t" ? draw("span", { className: "word" }, Figure(data)) : None();
    const level = data[`${name}b`][2];
    return draw(
      "span",
      { className: level < 0 ? "heat heat-few" : `heat heat${level}` },
      draw("span", { className: "num" }, figures[0].toFixed(2)),
      draw("i", { className: "evidence", style: { width: evidence(figures[3]) } }),
    );
  };

  cells.TargetCard = ({ data }) => {
    if (data.members !== undefined) return Group(data);
    const dead = data.t && data.tb[2] === 4;
    return draw(
      "div",
      { className: "card" },
      draw("b", { className: "card-name" }, data.n),
      draw("span", { className: dead ? "card-figure crit" : data.t ? "card-figure" : "card-figure none-word" }, Figure(data)),
      State(data),
      draw("span", { className: data.pb > 1 ? "card-step crit" : "card-step" }, data.p ? [data.p[0].toFixed(1), " ms ", StepTime(data)[1]] : null),
      data.h ? Strip(data) : null,
    );
  };

  cells.HeaderCell = ({ title, below, align, column }) => {
    const key = column.getColId();
    const sorted = app.fleet.sorted(key);
    const sort = () => app.fleet.sortBy(key);
    return draw(
      "button",
      { className: `head head-${align}`, title: `Sort by ${title}`, onClick: sort, type: "button", tabIndex: -1 },
      draw("span", null, title),
      draw("small", null, draw("span", { className: "below" }, below), sorted ? draw("span", { "aria-hidden": true }, sorted === "up" ? " ↑" : " ↓") : null),
    );
  };

  // ---- tooltips

  const NAMES = { t: "all traffic", step: "step time", output: "output", strip: "heartbeat", state: "state", target: "target" };

  const acceptance = (row, name) => {
    const figures = row[name];
    if (!figures) {
      return [["", name === "t" ? row.w : "No request of this category in the last 15 minutes."]];
    }
    const [length, lower, upper, steps] = figures;
    const [source, expected, heat] = row[`${name}b`];
    const bounds = lower === null || upper === null ? "" : ` (95 % ${lower.toFixed(2)}–${upper.toFixed(2)})`;
    const share = expected === null ? 0 : Math.round((1 - length / expected) * 100);
    const against = share === 0 ? "" : `; ${Math.abs(share)} % ${share > 0 ? "below" : "above"}`;
    return [
      ["acc_len", `${length.toFixed(2)}${bounds}`],
      ["expected", expected === null ? "not known" : `${expected.toFixed(1)} published${against}`],
      ["evidence", steps === null ? "not told" : `${app.words.whole(steps)} verify steps, 15 min${heat < 0 ? ": too few" : ""}`],
      ["source", source ?? "not told"],
    ];
  };

  const others = {
    step: (row) => (row.p ? [["step time", `${row.p[0].toFixed(1)} ms`], ["its normal", row.p[1] === null ? "not known" : `×${row.p[1].toFixed(2)}`]] : [["", "No step in the last 15 minutes."]]),
    output: (row) => [["output", row.o === null ? "no data" : `${app.words.whole(row.o)} tok/s`]],
    strip: (row) => [["", stripWords(row, app.fleet.tick)]],
    state: (row) => [["", row.w]],
    target: (row) => [["", row.a]],
  };

  cells.CellTooltip = ({ data, column }) => {
    const name = column?.getColId();
    if (!data || !name || name === "card" || data.members !== undefined) return null;
    const lines = others[name]?.(data) ?? acceptance(data, name);
    const about = NAMES[name] ?? column.getColDef().headerName;
    return draw(
      "div",
      { className: "tip", role: "tooltip" },
      draw("b", null, `${data.n} · ${about}`),
      draw(
        "table",
        null,
        draw("tbody", null, lines.map(([label, words], index) => draw("tr", { key: index }, label ? draw("th", null, label) : null, draw("td", { colSpan: label ? 1 : 2 }, words)))),
      ),
      draw("small", null, /^c\d+$/.test(name) ? "Enter opens Trends" : "Enter opens the target"),
    );
  };
})();
