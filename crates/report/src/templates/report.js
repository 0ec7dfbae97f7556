"use strict";
(function () {
  const charts = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  function hide() { tip.hidden = true; }
  function show(mark) {
    const chart = charts[Number(mark.closest("figure").dataset.chart)];
    const series = chart.series[Number(mark.dataset.series)];
    const point = series.points[Number(mark.dataset.point)];
    const table = document.createElement("table");
    for (const [name, value] of point.details) {
      const row = table.insertRow();
      row.insertCell().textContent = name;
      row.insertCell().textContent = value;
    }
    const head = document.createElement("strong");
    head.textContent = series.label;
    tip.replaceChildren(head, table);
    tip.hidden = false;
    const at = mark.getBoundingClientRect();
    const room = { x: document.documentElement.clientWidth, y: window.innerHeight };
    const right = at.right + 10 + tip.offsetWidth <= room.x;
    const left = right ? at.right + 10 : Math.max(4, at.left - 10 - tip.offsetWidth);
    const top = Math.max(4, Math.min(at.top, room.y - tip.offsetHeight - 8));
    tip.style.left = left + "px";
    tip.style.top = top + "px";
  }
  for (const mark of document.querySelectorAll(".pt")) {
    // The tip says the same and more readably; a label stays for screen readers.
    const title = mark.querySelector("title");
    mark.removeAttribute("aria-labelledby");
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
    mark.addEventListener("pointerenter", function () { show(mark); });
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", function () { show(mark); });
    mark.addEventListener("blur", hide);
  }
  addEventListener("keydown", function (event) { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, { passive: true });
  addEventListener("beforeprint", function () {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
