// The trends page: a drag over the figure is a step of the history, a double click goes back to before it.
(() => {
  const app = (window.draftgauge = window.draftgauge ?? {});
  const dash = (window.dash_clientside = window.dash_clientside ?? {});
  const $ = (id) => document.getElementById(id);

  const MARGINS = 52;
  let before = null; // from and to before the first of a row of zooms

  // The axis knows no zones: its times are those of the reader, written as if they were UTC.
  const moment = (text, zone) => {
    const written = Date.parse(`${String(text).replace(" ", "T").replace(/(\.\d{3})\d*$/, "$1")}${/\d:\d/.test(text) ? "" : "T00:00"}Z`);
    return new Date(Math.round((written - zone * 60000) / 1000) * 1000).toISOString().replace(".000", "");
  };

  const isAbsolute = (text) => !text.startsWith("now");

  function zoomed(start, end, zone) {
    const [from, to] = [moment(start, zone), moment(end, zone)];
    if (Date.parse(to) - Date.parse(from) < 5000) return;
    if (before === null || !isAbsolute(app.parameter("from"))) {
      before = { from: app.parameter("from"), to: app.parameter("to") };
    }
    app.go({ from, to });
  }

  function restore() {
    const range = before ?? { from: null, to: null };
    before = null;
    app.go(range);
  }

  function bind() {
    const plot = document.querySelector("#trends-figure .js-plotly-plot");
    if (!plot?.on || plot.dataset.bound) return;
    plot.dataset.bound = "true";
    plot.on("plotly_doubleclick", restore);
  }

  dash.draftgauge = Object.assign(dash.draftgauge ?? {}, {
    screen() {
      const plot = $("trends-plot");
      const width = plot?.clientWidth || document.documentElement.clientWidth - 48;
      return { width: width - MARGINS, zone: -new Date().getTimezoneOffset() };
    },

    zoom(relayout, _figure, screen) {
      setTimeout(bind, 500);
      const [start, end] = [relayout?.["xaxis.range[0]"], relayout?.["xaxis.range[1]"]];
      if (start !== undefined && dash.callback_context.triggered_id === "trends-figure" && dash.callback_context.triggered.some(({ prop_id }) => prop_id.endsWith("relayoutData"))) {
        zoomed(start, end, screen?.zone ?? 0);
      }
    },
  });

  // The link that is copied is the one of the moment.
  document.addEventListener(
    "click",
    (event) => {
      const button = event.target.closest?.("[data-copy-link]");
      if (button) button.dataset.copy = location.href;
    },
    true,
  );
})();
