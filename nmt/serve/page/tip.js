// The small note beside a word: what belongs to it.

export function showTip(rect, head, says) {
  const tip = byId("tip");
  tip.replaceChildren(element("strong", { dir: "auto" }, head), ...says.map((one) => element("span", { dir: "auto" }, one)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect(), room = document.documentElement.clientWidth;
  const left = Math.max(8, Math.min(rect.left + rect.width / 2 - width / 2, room - width - 8));
  const above = rect.top - height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 0 ? above : rect.bottom + 8}px`;
}

export function hideTip() { byId("tip").hidden = true; }

for (const moved of ["wheel", "touchmove", "resize"]) addEventListener(moved, hideTip, { passive: true });
