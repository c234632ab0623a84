// The rows of the fleet table: what the service sent, filtered, sorted and grouped as the address says.
(() => {
  const app = (window.draftgauge = window.draftgauge ?? {});
  const dash = (window.dash_clientside = window.dash_clientside ?? {});
  const functions = (window.dashAgGridFunctions = window.dashAgGridFunctions ?? {});
  const $ = (id) => document.getElementById(id);

  const GROUPS = { model: "m", engine: "e" };
  const HEIGHTS = { row: 36, card: 84, header: 46 };
  const FILTERS = { state: "s", engine: "e", group: "g", model: "m", target: "n" };
  const FIXED = { state: 128, target: 238, t: 76, step: 96, output: 76, strip: 250 };
  const CATEGORY = 88;
  const NARROW = 720;
  const MEDIUM = 992;

  const rows = new Map(); // target -> its row, in the order the service gave
  let grid = null;
  const told = {};

  const fleet = (app.fleet = {
    tick: 300, // seconds of a tick of the heartbeat
    edition: null, // what was learned last

    // A state that is newer than this page looks like no data.
    icon: (state) => known("icons")[state] ?? known("icons")["no-data"],

    // What people call the value of a filter.
    name: (filter, value) => known("names")[filter]?.[value] ?? value,

    // How a column is sorted now: "up", "down" or nothing.
    sorted(column) {
      const sort = app.parameter("sort");
      if (column === "state") return sort === "" ? "down" : null;
      return sort === column ? "up" : sort === `-${column}` ? "down" : null;
    },

    // The worst first, then the other way round, then as it was.
    sortBy(column) {
      if (column === "state" || column === "strip") return app.go({ sort: "" });
      const sort = app.parameter("sort");
      app.go({ sort: sort === column ? `-${column}` : sort === `-${column}` ? "" : column });
    },

    // The next row: it is the target that is looked for, not the category that was looked at.
    step(by) {
      if (!grid) return;
      const focused = grid.getFocusedCell();
      const last = grid.getDisplayedRowCount() - 1;
      let index = focused ? focused.rowIndex + by : 0;
      if (grid.getDisplayedRowAtIndex(index)?.data.members !== undefined) index += by;
      index = Math.min(Math.max(index, 0), last);
      const row = grid.getDisplayedRowAtIndex(index);
      if (!row) return;
      grid.ensureIndexVisible(index);
      grid.setFocusedCell(index, narrow() ? "card" : "target");
      document.querySelector(`.ag-row[row-index="${index}"]`)?.scrollIntoView({ block: "nearest" });
    },
  });

  // What dashboards/pages/fleet.py tells once.
  const known = (what) => (told[what] ??= JSON.parse($("fleet-names")?.dataset[what] ?? "{}"));

  const narrow = () => window.innerWidth < NARROW;

  // ---- what the service sent

  // A change of an edition that is not ours (it was overtaken) is left: the next tick is told against what we have.
  function learn(news) {
    if (news.since !== null && news.since !== fleet.edition) return;
    if (news.since === null) rows.clear();
    for (const target of news.gone) rows.delete(target);
    for (const [target, fields] of Object.entries(news.rows)) {
      rows.set(target, { ...rows.get(target), ...fields });
    }
    fleet.tick = news.tick;
    dash.set_props("firing", { data: news.firing });
    const age = document.querySelector("#fleet-status [data-since]");
    if (age && news.told) age.dataset.since = news.told;
    fleet.edition = news.edition;
  }

  // ---- what is shown of it

  const matches = (row) =>
    Object.entries(FILTERS).every(([name, field]) => {
      const wanted = app.parameters(name);
      return !wanted.length || wanted.includes(row[field] ?? "");
    }) && row.n.toLowerCase().includes(app.parameter("find").trim().toLowerCase());

  const VALUES = {
    target: (row) => row.n.toLowerCase(),
    step: (row) => row.p?.[0],
    output: (row) => row.o,
  };
  const valueOf = (row, column) => (VALUES[column] ?? (() => row[column]?.[0]))(row);

  // Missing values come last, whichever way.
  const compare = (left, right, down) => {
    const missing = (left === undefined || left === null) - (right === undefined || right === null);
    if (missing || left === right || left === undefined || left === null) return missing;
    return (left < right ? -1 : 1) * (down ? -1 : 1);
  };

  function arranged() {
    const sort = app.parameter("sort");
    const down = sort.startsWith("-");
    const column = down ? sort.slice(1) : sort;
    const found = [...rows.values()].filter(matches);
    const worst = (left, right) => left.i - right.i;
    if (column in GROUPS) return grouped(found.sort(worst), column);
    if (column === "") return found.sort(worst);
    return found.sort((left, right) => compare(valueOf(left, column), valueOf(right, column), down) || worst(left, right));
  }

  function grouped(found, by) {
    const groups = Map.groupBy(found, (row) => row[GROUPS[by]] ?? "");
    return [...groups].sort(([left], [right]) => left.localeCompare(right)).flatMap(([value, members]) => {
      const firing = members.filter((row) => row.s === "critical" || row.s === "warning").length;
      const words = `${members.length} ${members.length === 1 ? "target" : "targets"}${firing ? `, ${firing} firing` : ""}`;
      // No target's name begins with this.
      return [{ n: `\u0000${value}`, title: fleet.name(by, value) || "not known", members: words }, ...members];
    });
  }

  function show() {
    if (!grid || grid.isDestroyed()) return;
    const wanted = new Set();
    const change = { add: [], update: [], remove: [] };
    arranged().forEach((row, order) => {
      const data = { ...row, order };
      const node = grid.getRowNode(row.n);
      wanted.add(row.n);
      if (!node) change.add.push(data);
      else if (JSON.stringify(node.data) !== JSON.stringify(data)) change.update.push(data);
    });
    grid.forEachNode(({ data }) => wanted.has(data.n) || change.remove.push(data));
    if (change.add.length || change.update.length || change.remove.length) grid.applyTransaction(change);
    fit();
  }

  // ---- which columns fit: the categories with the least evidence go first

  function fit() {
    const table = $("fleet-table");
    if (!grid || grid.isDestroyed() || !table) return;
    const width = table.clientWidth;
    const cards = narrow();
    const medium = window.innerWidth < MEDIUM;
    const widths = { ...FIXED, ...(medium ? { target: 132, strip: 110, output: 0 } : {}) };
    const names = grid.getColumns()?.map((column) => column.getColId()) ?? [];
    const categories = names.filter((name) => /^c\d+$/.test(name));
    const room = Math.floor((width - Object.values(widths).reduce((sum, one) => sum + one, 0)) / CATEGORY);
    const steps = (name) => [...rows.values()].reduce((sum, row) => sum + (row[name]?.[3] ?? 0), 0);
    const kept = new Set([...categories].sort((left, right) => steps(right) - steps(left)).slice(0, Math.max(room, 0)));
    const visible = (name) => {
      if (name === "order") return false;
      if (cards || name === "card") return cards && name === "card";
      return categories.includes(name) ? categories.length <= room || kept.has(name) : widths[name] !== 0;
    };
    const key = names.map((name) => `${name}${visible(name)}`).join() + medium + cards;
    if (fit.key === key && fit.grid === grid) return;
    fit.key = key;
    fit.grid = grid;
    document.body.dataset.medium = medium;
    grid.applyColumnState({ state: names.map((colId) => ({ colId, hide: !visible(colId), ...(colId === "target" ? { width: widths.target } : {}) })) });
    grid.setGridOption("headerHeight", cards ? 0 : HEIGHTS.header);
    grid.resetRowHeights();
  }
  window.addEventListener("resize", fit);
  functions.rowHeight = (row) => (narrow() && row.members === undefined ? HEIGHTS.card : HEIGHTS.row);

  // ---- opening

  const open = (row) => app.go({ open: row.n });
  const trends = (row, category) => app.go({ target: row.n, category, open: null }, "/trends");

  function watch(api) {
    api.addEventListener("rowClicked", ({ data }) => data.members === undefined && open(data));
    api.addEventListener("cellKeyDown", ({ data, column, event }) => {
      if (event.key !== "Enter" || !data || data.members !== undefined) return;
      const isCategory = /^c\d+$/.test(column.getColId());
      if (isCategory) trends(data, column.getColDef().headerComponentParams.value);
      else open(data);
    });
    api.addEventListener("newColumnsLoaded", fit);
    // A grid that has just come to be empties itself once more.
    api.addEventListener("rowDataUpdated", show);
  }

  async function ready() {
    const api = await window.dash_ag_grid.getApiAsync("fleet-table");
    if (api === grid) return;
    grid = api;
    watch(api);
    show();
  }

  dash.draftgauge = Object.assign(dash.draftgauge ?? {}, {
    span: () => {
      const asked = new URLSearchParams({ from: app.parameter("from"), to: app.parameter("to") });
      return app.fleet.asked === String(asked) && $("fleet-verdict") === app.fleet.page
        ? dash.no_update
        : ((app.fleet.asked = String(asked)), (app.fleet.page = $("fleet-verdict")), `?${asked}`);
    },

    fleet(news) {
      if (!news) return [true, "", false, null];
      if (news.edition !== fleet.edition) learn(news);
      if (grid && !grid.isDestroyed()) show();
      else ready();
      const hidden = rows.size - arranged().filter((row) => row.members === undefined).length;
      const words = hidden === 1 ? "1 target is hidden." : `${hidden} targets are hidden.`;
      const none = rows.size > 0 && hidden === rows.size;
      document.body.dataset.unmatched = none;
      document.body.dataset.targets = rows.size;
      return [!none, words, true, fleet.edition];
    },
  });
})();
