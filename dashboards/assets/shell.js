// The address and what changes it: controls, keys, theme, navigation. Every change is a step of the history.
(() => {
  const app = (window.draftgauge = window.draftgauge ?? {});
  const dash = (window.dash_clientside = window.dash_clientside ?? {});
  const $ = (id) => document.getElementById(id);
  const defaults = () => $("defaults")?.dataset ?? {};
  const asked = () => new URLSearchParams(location.search);

  // ---- the address

  app.parameter = (name) => asked().get(name) ?? defaults()[name] ?? "";
  app.parameters = (name) => asked().getAll(name);

  // Whatever their order, the same parameters are the same address.
  const same = (parameters) => [...parameters].map(String).sort().join("&");

  // Change parameters: null or the default takes one away, a list is a parameter several times.
  app.go = (changes, path = location.pathname) => {
    const parameters = asked();
    const before = same(parameters);
    for (const [name, value] of Object.entries(changes)) {
      parameters.delete(name);
      for (const one of [value].flat()) {
        if (one !== null && one !== "" && one !== defaults()[name]) parameters.append(name, one);
      }
    }
    if (path === location.pathname && same(parameters) === before) return;
    const search = parameters.size ? `?${parameters}` : "";
    history.pushState({}, "", path + search);
    window.dispatchEvent(new Event("_dashprivate_pushstate"));
  };

  const toggle = (name, value) => {
    const values = app.parameters(name);
    app.go({ [name]: values.includes(value) ? values.filter((one) => one !== value) : [...values, value] });
  };

  const isPaused = () => app.parameter("refresh") === "0s";
  let refreshBefore = null;
  app.isPaused = isPaused;

  const shift = (change) => {
    const [start, end] = [app.words.seconds(app.parameter("from")), app.words.seconds(app.parameter("to"))];
    const [from, to] = change(start, end, end - start);
    const now = app.words.now();
    app.go({ from: Math.round(Math.min(from, now - 60)), to: to >= now - 1 ? "now" : Math.round(to) });
  };

  const actions = {
    pause: () => {
      if (isPaused()) return app.go({ refresh: refreshBefore });
      refreshBefore = app.parameter("refresh");
      app.go({ refresh: "0s" });
    },
    "zoom-out": () => {
      const relative = /^now-(\d+)([mhd])$/.exec(app.parameter("from"));
      if (relative && app.parameter("to") === "now") app.go({ from: `now-${2 * relative[1]}${relative[2]}` });
      else shift((start, end, span) => [start - span / 2, end + span / 2]);
    },
    earlier: () => shift((start, end, span) => [start - span / 2, end - span / 2]),
    later: () => shift((start, end, span) => [start + span / 2, end + span / 2]),
    keys: () => dash.set_props("keys", { opened: true }),
    try: () => app.live.ask(),
    refresh: () => app.live.ask(true),
    clear: () => app.go({ state: [], engine: [], group: [], model: [], target: [], find: null }),
    more: (button) => button.closest(".incidents").classList.add("all"),
    copy: (button) => copy(button),
  };

  async function copy(button) {
    await copied(button.dataset.copy);
    button.classList.add("copied");
    app.announce("Copied");
    setTimeout(() => button.classList.remove("copied"), 1000);
  }

  async function copied(text) {
    // Pages that are not served over HTTPS have no clipboard.
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  app.announce = (text) => dash.set_props("announce", { children: text });

  // A menu closes once something was chosen (filters are chosen several at a time), or somebody looks elsewhere.
  const closeMenus = (except) => each("details.menu-box[open]", (menu) => menu !== except && menu.removeAttribute("open"));

  document.addEventListener("click", (event) => {
    const inside = event.target.closest?.("details.menu-box");
    const chosen = event.target.closest?.(".menu button:not([data-toggle])");
    closeMenus(chosen ? null : inside);
    const control = event.target.closest?.("[data-go], [data-toggle], [data-act], [data-to]");
    if (!control || event.defaultPrevented) return;
    const { go, toggle: toggled, act, to } = control.dataset;
    const changes = Object.fromEntries(new URLSearchParams(go ?? ""));
    if (to !== undefined) app.go({ open: null, ...changes }, to);
    else if (go !== undefined) app.go(changes);
    if (toggled !== undefined) new URLSearchParams(toggled).forEach((value, name) => toggle(name, value));
    if (act !== undefined) actions[act]?.(control);
  });

  // ---- what controls show of the address

  function reflect() {
    document.body.dataset.paused = isPaused();
    document.body.dataset.theme = app.parameter("theme");
    each(".range-words", (element) => app.write(element, app.words.range(app.parameter("from"), app.parameter("to"))));
    each(".refresh-words", (element) => app.write(element, isPaused() ? "Paused" : app.parameter("refresh").replace("s", " s")));
    each(".pause", (element) => element.setAttribute("aria-pressed", isPaused()));
    each("[data-go]", (element) => mark(element, says(element.dataset.go)));
    each("[data-toggle]", (element) => mark(element, holds(element.dataset.toggle)));
    each("[data-filter]", (element) => {
      const filter = element.dataset.filter;
      const values = app.parameters(filter).map((value) => app.fleet.name(filter, value));
      app.write(element, values.join(", ") || "any");
    });
    each("[data-live-word]", (element) => app.write(element, document.body.dataset.live ?? "live"));
    each(".firing-count", (element) => app.write(element, document.body.dataset.firing ?? ""));
    app.words?.fill();
  }

  const each = (selector, act) => document.querySelectorAll(selector).forEach(act);
  const says = (query) => [...new URLSearchParams(query)].every(([name, value]) => (asked().get(name) ?? defaults()[name] ?? "") === (value || (defaults()[name] ?? "")));
  const holds = (query) => [...new URLSearchParams(query)].every(([name, value]) => app.parameters(name).includes(value));
  const mark = (element, on) => {
    if (element.hasAttribute("aria-pressed")) element.setAttribute("aria-pressed", on);
    else if (on) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
  };

  // React draws menus and pages when it likes: they are given their words as soon as they are there.
  let reflecting = false;
  function reflectSoon() {
    if (reflecting) return;
    reflecting = true;
    requestAnimationFrame(() => {
      reflecting = false;
      reflect();
    });
  }
  new MutationObserver(reflectSoon).observe(document.documentElement, { childList: true, subtree: true });
  window.addEventListener("popstate", reflectSoon);
  window.addEventListener("_dashprivate_pushstate", reflectSoon);

  // ---- keys

  const opened = () => document.querySelector("[role=dialog]");
  const press = {
    "/": () => $("find")?.focus(),
    "?": actions.keys,
    p: actions.pause,
    j: () => app.fleet?.step(1),
    k: () => app.fleet?.step(-1),
    1: () => document.querySelector("[data-incident='1']")?.click(),
    2: () => document.querySelector("[data-incident='2']")?.click(),
    "g f": () => app.go({ open: null }, "/"),
    "g t": () => app.go({ open: null }, "/trends"),
    "d r": actions.refresh,
    "t z": actions["zoom-out"],
    "t ArrowLeft": actions.earlier,
    "t ArrowRight": actions.later,
  };
  let before = { key: "", at: 0 };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable=true]");
    if (typing && event.key === "Escape") typing.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && document.querySelector("details.menu-box[open]")) {
      event.target.closest?.("details")?.querySelector("summary").focus();
      return closeMenus();
    }
    if (event.key === "Escape" && !opened()) return app.go({ open: null });
    const sequence = event.timeStamp - before.at < 1000 ? `${before.key} ${event.key}` : event.key;
    const act = press[sequence] ?? press[event.key];
    before = { key: event.key, at: event.timeStamp };
    if (!act) return;
    event.preventDefault();
    act();
  });

  // ---- callbacks

  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => {
    const [forced, scheme] = theme();
    dash.set_props("provider", { forceColorScheme: forced });
    dash.set_props("scheme", { data: scheme });
  });

  function theme() {
    const asks = app.parameter("theme");
    const scheme = asks === "system" ? (dark.matches ? "dark" : "light") : asks;
    return [scheme, scheme];
  }

  let typed = 0;
  let back = null; // what had the focus before the drawer

  dash.draftgauge = Object.assign(dash.draftgauge ?? {}, {
    theme,

    navigation(pathname, search, ids) {
      const kept = new URLSearchParams(search);
      kept.delete("open");
      const query = kept.size ? `?${kept}` : "";
      return [
        ids.map((id) => (id.in === "brand" ? "brand" : id.nav === pathname ? "nav nav-current" : "nav")),
        ids.map((id) => id.nav + query),
      ];
    },

    // What is being typed is not overwritten by what the address said before.
    elsewhere: (mark, pathname) => (pathname === "/" ? dash.no_update : mark),

    find: () => (typed ? dash.no_update : app.parameter("find")),

    found(value) {
      clearTimeout(typed);
      typed = setTimeout(() => {
        typed = 0;
        app.go({ find: value ?? "" });
      }, 300);
    },

    // The drawer opens at once, and is filled when the answer comes; it takes the focus, and gives it back.
    opened(search, mark) {
      const name = asked().get("open");
      const was = document.body.dataset.opened;
      if (name === null) {
        delete document.body.dataset.opened;
        if (was !== undefined) back?.focus?.();
        return was === undefined ? [dash.no_update, dash.no_update] : [null, ""];
      }
      document.body.dataset.opened = name;
      if (was !== name) {
        back = was === undefined ? document.activeElement : back;
        requestAnimationFrame(() => $("target-name")?.focus({ preventScroll: true }));
      }
      return [{ name, mark, zone: -new Date().getTimezoneOffset() }, name];
    },

    firing(count) {
      const before = document.body.dataset.firing;
      if (typeof count !== "number" || before === String(count)) return dash.no_update;
      document.title = count ? `(${count}) Draftgauge` : "Draftgauge";
      $("favicon").href = count ? "/assets/favicon-firing.svg" : "/assets/favicon.svg";
      document.body.dataset.firing = count;
      reflect();
      // What a page begins with is no news.
      if (before === undefined) return dash.no_update;
      return count === 1 ? "1 alert is firing" : count ? `${count} alerts are firing` : "Nothing is firing";
    },
  });

  document.addEventListener("DOMContentLoaded", reflect);
  // On a slow line a second passes before words.js is there.
  setInterval(() => app.words?.fill(), 1000);
})();
