// In the head: the theme of the address, before anything is painted and before Mantine reads what it remembers.
(() => {
  const asked = new URLSearchParams(location.search).get("theme");
  const known = asked === "light" || asked === "dark";
  const dark = known ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.mantineColorScheme = dark ? "dark" : "light";
  try {
    localStorage.setItem("mantine-color-scheme-value", known ? asked : "auto");
  } catch {
    // A browser that forbids storage shows its own scheme for a moment.
  }
})();
