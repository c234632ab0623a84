// Keeps the page live. The service tells over the websocket that something is new (dashboards/live.py); where that is
// silent, the page asks by itself; where that is not answered either, it says so, shows what it knew, and goes on asking.
(() => {
  const app = (window.draftgauge = window.draftgauge ?? {});
  const dash = (window.dash_clientside = window.dash_clientside ?? {});
  const $ = (id) => document.getElementById(id);

  const SILENT = 8; // seconds without a word over the socket: ask
  const LOST = 10; // seconds without any word: say so
  const ASKING = 5; // seconds between questions
  const RENEWED = 300; // seconds after which a lease is renewed
  const page = crypto.getRandomValues(new Uint32Array(2)).join("-");

  const seconds = () => performance.now() / 1000;
  const every = () => Number.parseInt(app.parameter("refresh"), 10);

  const live = (app.live = {
    heardAt: seconds(), // from the service, in any way
    socketAt: seconds(), // over the websocket
    knownAt: null, // unix seconds, by the clock of the service
    askedAt: null, // null while nobody needs to ask
    failedAt: 0,
    mark: null, // what the pages have read
    lease: { number: 0, every: null, at: 0, patience: 15 },

    // Ask at once; all: and read everything again even if nothing is new.
    ask(all = false) {
      if (all) live.mark = "";
      live.askedAt = seconds();
      dash.set_props("poll", { n_intervals: Date.now() });
    },
  });

  function take(lease) {
    live.lease = { ...live.lease, number: live.lease.number + 1, every: every(), at: seconds(), ...lease };
    dash.set_props("lease", { data: { page, lease: live.lease.number, every: live.lease.every } });
  }

  function keepLease() {
    const { at, patience } = live.lease;
    if (live.lease.every !== every()) {
      // What was not heard while nobody listened is not lost.
      live.heardAt = live.socketAt = seconds();
      return take({ patience: 15 });
    }
    const silent = seconds() - live.socketAt > SILENT;
    if (!silent && seconds() - at > RENEWED) take();
    // The socket may be back, or never come back (a proxy without websockets): try, more and more rarely.
    const answered = seconds() - live.heardAt < ASKING;
    if (silent && answered && seconds() - at > patience) take({ patience: Math.min(2 * patience, 300) });
  }

  function keepAsking() {
    const needed = seconds() - live.socketAt > SILENT;
    if (needed && live.askedAt === null) {
      dash.set_props("poll", { disabled: false });
      live.ask();
    } else if (!needed && live.askedAt !== null) {
      dash.set_props("poll", { disabled: true });
      live.askedAt = null;
    }
  }

  function show() {
    const silence = seconds() - live.heardAt;
    const state = app.isPaused() ? "paused" : silence > LOST ? "lost" : "live";
    const before = document.body.dataset.live;
    document.body.dataset.live = state;
    document.querySelectorAll("[data-live-word]").forEach((element) => app.write(element, state));
    if (state === "lost") {
      app.write($("lost-ago"), app.words.age(silence));
      app.write($("lost-known"), live.knownAt === null ? "no time" : app.words.clock(live.knownAt, true));
      const next = Math.ceil((live.askedAt ?? seconds()) + ASKING - seconds());
      app.write($("lost-next"), next > 0 ? `; trying again in ${next} s.` : "; trying again.");
    }
    if (before !== state && (state === "lost" || before === "lost")) {
      app.announce(state === "lost" ? "Connection lost" : "Connected again");
    }
  }

  function look() {
    if (!dash.set_props || !$("lost")) return;
    keepLease();
    if (!app.isPaused()) keepAsking();
    else if (live.askedAt !== null) {
      dash.set_props("poll", { disabled: true });
      live.askedAt = null;
    }
    // Whoever fails again says so again.
    if (seconds() - live.failedAt > Math.max(2 * every(), 15)) delete document.body.dataset.failed;
    show();
  }

  dash.draftgauge = Object.assign(dash.draftgauge ?? {}, {
    // The service said that it is there, and what is newest. The pages read when the pulse changes.
    heard(alive) {
      if (!alive) return dash.no_update;
      if (alive.version !== $("defaults").dataset.version) return location.reload();
      app.words.synchronize(alive.at);
      live.heardAt = seconds();
      live.knownAt = alive.at;
      if (alive.socket) {
        live.socketAt = seconds();
        live.lease.patience = 15;
      }
      show();
      live.mark ??= $("defaults").dataset.mark;
      if (alive.mark === live.mark || alive.mark === null) return dash.no_update;
      live.mark = alive.mark;
      return alive.mark;
    },

    failed(incident) {
      live.failedAt = seconds();
      document.body.dataset.failed = incident;
      app.write($("failed-incident"), incident);
      app.announce("The service could not answer");
    },

    tried() {
      live.askedAt = seconds();
    },
  });

  setInterval(look, 1000);
  window.addEventListener("_dashprivate_pushstate", look);
  window.addEventListener("popstate", look);
  document.addEventListener("visibilitychange", look);
})();
