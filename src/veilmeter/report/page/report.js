"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figure-data").textContent);
  const views = new Map();
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  let chosen = "";

  // Charts take their ink from the page, so that they fit light, dark and print.
  function inks() {
    const ink = dark() ? "#e4e9ef" : "#1d2530", soft = dark() ? "#a3adba" : "#55606e", grid = dark() ? "#37414d" : "#d9dee5";
    return {
      background: "transparent", title: { color: ink },
      axis: { labelColor: soft, titleColor: ink, gridColor: grid, domainColor: soft, tickColor: soft },
      legend: { labelColor: ink, titleColor: soft }, header: { labelColor: ink, titleColor: ink },
      text: { color: ink }, view: { stroke: grid }, style: { "guide-label": { fill: soft }, "guide-title": { fill: ink }, cell: { stroke: grid } },
    };
  }

  async function draw(id) {
    const box = document.getElementById(id);
    if (!box) return;
    if (views.has(id)) views.get(id).finalize();
    const result = await vegaEmbed(box, specs[id], { actions: false, renderer: "svg", config: inks(), tooltip: { theme: dark() ? "dark" : "light" } });
    views.set(id, result.view);
    if (chosen) mark(result.view);
    result.view.addEventListener("click", (_event, item) => {
      const datum = (item && item.datum) || {};
      const name = datum.speaker || datum.row;
      if (name && Object.hasOwn(people, name)) choose(name);
    });
    box.dataset.drawn = "yes";
  }

  function mark(view) {
    try { view.signal("chosen", chosen).runAsync(); } catch (_error) { /* this figure has no speakers */ }
  }

  const drawAll = () => Promise.all(Object.keys(specs).map(draw)).then(() => { root.dataset.ready = "yes"; });
  window.veilmeterReady = drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!root.dataset.theme) drawAll(); });
  const themeButton = document.getElementById("theme");
  if (themeButton) themeButton.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; drawAll(); });

  // People: one choice, shown in table, matrix and zoo.
  const table = document.getElementById("people-table");
  const box = document.getElementById("chosen");
  const people = JSON.parse(document.getElementById("people-data").textContent);

  function choose(name) {
    chosen = chosen === name ? "" : name;
    for (const view of views.values()) mark(view);
    if (!table) return;
    for (const row of table.tBodies[0].rows) {
      const on = chosen !== "" && row.dataset.speaker === chosen;
      row.classList.toggle("chosen", on);
      row.setAttribute("aria-selected", on ? "true" : "false");
      if (on) {  // bring it into the table's own view without moving the page
        const frame = row.closest(".scroller");
        frame.scrollTop = row.offsetTop - frame.clientHeight / 2;
      }
    }
    show(people[chosen]);
  }
  window.veilmeterChoose = choose;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function show(person) {
    if (!box) return;
    box.replaceChildren();
    if (!person) { box.append(element("span", box.dataset.empty, { class: "soft" })); return; }
    const title = element("p"); title.append(element("strong", chosen), document.createTextNode(person.sentence ? ": " + person.sentence : ""));
    box.append(title);
    if (person.audio && person.audio.length) {
      const pairs = element("div", "", { class: "pairs" });
      pairs.append(element("span", "original", { class: "soft small" }), element("span", "anonymized", { class: "soft small" }));
      person.audio.forEach((pair, number) => {
        pairs.append(
          element("audio", "", { controls: "", preload: "none", src: pair.original, "aria-label": `${chosen}, recording ${number + 1}, original` }),
          element("audio", "", { controls: "", preload: "none", src: pair.anonymized, "aria-label": `${chosen}, recording ${number + 1}, anonymized` }));
      });
      box.append(pairs);
    }
  }

  if (table) {
    const body = table.tBodies[0];
    body.addEventListener("click", (event) => { const row = event.target.closest("tr"); if (row) choose(row.dataset.speaker); });
    body.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { const row = event.target.closest("tr"); if (row) { event.preventDefault(); choose(row.dataset.speaker); } }
    });
    const heads = [...table.tHead.rows[0].cells];
    const sort = (head) => {
      const column = heads.indexOf(head), up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => { const cell = row.cells[column], value = cell.dataset.value; return value !== undefined ? (value === "" ? NaN : Number(value)) : cell.textContent; };
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if (typeof x === "number") return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : up ? x - y : y - x;
        return up ? x.localeCompare(y, undefined, { numeric: true }) : y.localeCompare(x, undefined, { numeric: true });
      });
      body.append(...rows);
    };
    for (const head of heads) {
      head.addEventListener("click", () => sort(head));
      head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head); } });
    }
    const search = document.getElementById("people-search");
    const count = document.getElementById("people-count");
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase();
      let shown = 0;
      for (const row of body.rows) { const hit = [...row.cells].some((one) => one.textContent.toLowerCase().includes(words)); row.hidden = !hit; shown += hit; }
      count.textContent = `${shown} of ${body.rows.length} shown`;
    });
  }

  // Every figure gives its data as CSV; no cell may start a formula in a spreadsheet.
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  function tables(node) {
    if (!node || typeof node !== "object") return [];
    const own = [...Object.values(node.datasets || {}), node.data && node.data.values].filter((rows) => Array.isArray(rows) && rows.length);
    return own.concat(Object.entries(node).flatMap(([key, part]) => (key === "datasets" || key === "data" ? [] : tables(part))));
  }
  function csvOf(id) {
    return tables(specs[id]).map((rows) => {
      const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
      return [keys.join(","), ...rows.map((row) => keys.map((key) => cell(row[key])).join(","))].join("\n");
    }).join("\n\n") + "\n";
  }
  window.veilmeterCsv = csvOf;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-csv]");
    if (!button) return;
    const link = element("a", "", { download: button.dataset.csv.replace(/^figure-/, "") + ".csv" });
    link.href = URL.createObjectURL(new Blob([csvOf(button.dataset.csv)], { type: "text/csv" }));
    link.click();
    URL.revokeObjectURL(link.href);
  });
})();
