"use strict";
// What the page remembers in this browser, and the colors, which are wanted before anything is drawn.
const recall = (name) => {
  try { return localStorage.getItem(`nmt-smt ${name}`); } catch { return null; } // a browser may forbid it
};
const remember = (name, value) => {
  try { localStorage.setItem(`nmt-smt ${name}`, value); } catch { /* then it is forgotten */ }
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
