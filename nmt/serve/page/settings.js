"use strict";
// What the page remembers in this browser, and the colors, which are wanted before anything is drawn.
const settings = new Map(); // for browsers that forbid to store anything
const recall = (name) => {
  try { return localStorage.getItem(`nmt-smt ${name}`); } catch { return settings.get(name) ?? null; }
};
const remember = (name, value) => {
  try { localStorage.setItem(`nmt-smt ${name}`, value); } catch { settings.set(name, value); }
};

const THEMES = ["automatic", "light", "dark"];
const DARK = "screen and (prefers-color-scheme: dark)";
const DARK_RULES = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media?.mediaText.includes("dark"));

function applyTheme(theme) {
  document.documentElement.style.colorScheme = theme === "automatic" ? "light dark" : theme;
  for (const rule of DARK_RULES) rule.media.mediaText = { automatic: DARK, light: "not all", dark: "screen" }[theme];
}

const theme = () => (THEMES.includes(recall("theme")) ? recall("theme") : "automatic");
applyTheme(theme());
