"use strict";
// What the scripts of all pages share.
const byId = (id) => document.getElementById(id);
const number = (value, digits) => (value === null || value === undefined ? "" : value.toFixed(digits));

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
