"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figure-data").textContent);
  const views = new Map();
  const root = document.documentElement;
  let chosen = "";

  // Charts take their ink from the page's own variables, so that light, dark and print need no second drawing.
  const inks = {
    background: "transparent", title: { color: "var(--ink)" },
    axis: { labelColor: "var(--soft)", titleColor: "var(--ink)", gridColor: "var(--line)", domainColor: "var(--soft)", tickColor: "var(--soft)" },
    legend: { labelColor: "var(--ink)", titleColor: "var(--soft)" }, header: { labelColor: "var(--ink)", titleColor: "var(--ink)" },
    text: { color: "var(--ink)" }, view: { stroke: "var(--line)" },
    style: { "guide-label": { fill: "var(--soft)" }, "guide-title": { fill: "var(--ink)" }, cell: { stroke: "var(--line)" } },
  };

  // A figure is drawn for the room there is, whatever fonts a machine has: titles are measured and wrapped, and what was
  // drawn is measured again; legends take fewer columns and panels give way until all of it fits. Scaling a figure
  // down would make it unreadable.
  const NARROW = 620;
  const SMALLEST = 60;  // of a panel
  const MARGIN = 6;  // around a figure
  const ATTEMPTS = 12;
  const BREAK = " \u200b";  // a title is also read aloud and becomes part of an expression, where a new line is an error
  const ruler = document.createElement("canvas").getContext("2d");

  function wrapped(text, room, size, font) {
    ruler.font = `${size}px ${font}`;
    const lines = [];
    for (const word of String(text).split(" ")) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && ruler.measureText(longer).width <= room) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.join(BREAK);
  }

  // Titles of panels and axes, wrapped at the length of what they name.
  function wrapTitles(node, font, width, height) {
    if (!node || typeof node !== "object") return;
    if (typeof node.width === "number") width = node.width;
    if (typeof node.height === "number") height = node.height;
    if (typeof node.title === "string" && (node.width || node.layer || node.mark)) node.title = wrapped(node.title, width, 13, font);
    for (const [channel, room] of [["x", width], ["y", height]]) {
      const drawn = (node.encoding || {})[channel];
      if (!drawn) continue;
      if (typeof drawn.title === "string") drawn.title = wrapped(drawn.title, room, 12, font);
      if (drawn.axis && typeof drawn.axis.title === "string") drawn.axis.title = wrapped(drawn.axis.title, room, 12, font);
    }
    for (const part of ["layer", "hconcat", "vconcat", "concat"]) for (const child of node[part] || []) wrapTitles(child, font, width, height);
  }

  function fitted(spec, room, limits) {
    const made = structuredClone(spec);
    const narrow = room < NARROW;
    if (narrow && made.hconcat) { made.vconcat = made.hconcat; delete made.hconcat; }
    const widest = (node) => (node.hconcat || [1]).length;
    const columns = Math.max(widest(made), ...(made.vconcat || []).map(widest));
    const width = Math.floor((room - (columns > 1 ? 45 : 80)) / columns);
    (function shrink(node) {
      if (!node || typeof node !== "object") return;
      if (narrow && node.layer) {  // names beside points would push the panel together: a legend tells them
        const named = node.layer.filter((part) => (part.mark || {}).type === "text" && ((part.encoding || {}).text || {}).field === "system");
        if (named.length) {
          const toName = (part) => ((part.encoding || {}).x2 || {}).field === "_x";
          node.layer = node.layer.filter((part) => !named.includes(part) && !toName(part));
          for (const part of node.layer) if ((part.encoding || {}).color && part.encoding.color.field === "system") part.encoding.color.legend = { orient: "bottom", columns: 1, title: null };
        }
      }
      if (typeof node.width === "number") {
        const wanted = Math.max(SMALLEST, (narrow ? width : node.width) - limits.cut);
        if (typeof node.height === "number" && node.height > wanted && narrow) node.height = wanted;
        node.width = wanted;
      }
      if (node.legend && typeof node.legend === "object") {
        if (node.legend.columns) node.legend.columns = Math.min(node.legend.columns, limits.columns);
        if (limits.label) node.legend.labelLimit = limits.label;
      }
      for (const [key, part] of Object.entries(node)) if (key !== "datasets" && key !== "data") shrink(part);
    })(made);
    const legend = { ...(made.config || {}).legend };
    if (narrow || limits.stacked) legend.layout = { bottom: { anchor: "start", direction: "vertical" } };
    if (narrow && columns > 1) legend.orient = "bottom";
    made.config = { ...made.config, legend, lineBreak: BREAK };
    wrapTitles(made, made.config.font || "sans-serif", width, 300);
    return { spec: made, columns };
  }

  // What the next attempt gives way in: legends where they stick out, else the width of the panels. Null where all fits.
  function tighter(svg, room, limits, columns) {
    const frame = svg.getBoundingClientRect(), drawn = svg.viewBox.baseVal.width;
    if (drawn <= room) return null;
    const below = (box) => box.top > frame.top + frame.height / 3;  // a legend beside the panels moves with them
    const boxes = [...svg.querySelectorAll(".role-legend")].map((part) => part.getBoundingClientRect()).filter(below);
    const legends = Math.max(0, ...boxes.map((box) => ((box.right - frame.left) * drawn) / frame.width));
    if (legends > room - MARGIN) {
      if (!limits.stacked) return { ...limits, stacked: true };
      if (limits.columns > 1) return { ...limits, columns: limits.columns - 1 };
      const labels = [...svg.querySelectorAll(".role-legend-label text")].map((part) => part.getBBox().width);
      if (labels.length) return { ...limits, label: Math.floor(Math.max(...labels) - (legends - room + MARGIN)) - 1 };
    }
    return { ...limits, cut: limits.cut + Math.ceil((drawn - room) / columns) };
  }

  async function draw(id) {
    const box = document.getElementById(id);
    if (!box || box.dataset.drawn) return;
    box.dataset.drawn = "yes";
    const room = Math.floor(box.getBoundingClientRect().width);
    box.dataset.room = String(room);
    if (views.has(id)) views.get(id).finalize();
    let limits = { cut: 0, columns: room < NARROW ? 2 : 6, label: 0, stacked: false };
    let result = null;
    for (let attempt = 0; attempt < ATTEMPTS && limits; attempt += 1) {
      if (result) result.finalize();
      const { spec, columns } = fitted(specs[id], room, limits);
      result = await vegaEmbed(box, spec, { actions: false, ast: true, renderer: "svg", config: inks, tooltip: { theme: "custom" } });
      limits = tighter(box.querySelector("svg"), room, limits, columns);
    }
    views.set(id, result.view);
    if (chosen) mark(result.view);
    for (const control of document.querySelectorAll(`[data-figure="${id}"]`)) steer(control);
    result.view.addEventListener("click", (_event, item) => {
      const datum = (item && item.datum) || {};
      const name = datum.speaker || datum.row;
      if (name && Object.hasOwn(people, name)) choose(name);
      if (datum.system) hear(datum.system);
    });
  }

  // A click on an entry of a legend shows what has its color and dims the rest; another one shows all again.
  document.addEventListener("click", (event) => {
    const entry = event.target.closest && event.target.closest(".role-legend .role-scope > g");
    const symbol = entry && entry.querySelector(".role-legend-symbol path"), svg = entry && entry.closest("svg");
    if (!symbol) return;
    const inkOf = (part) => (part.getAttribute("stroke") && part.getAttribute("stroke") !== "none" && part.getAttribute("stroke") !== "transparent" ? part.getAttribute("stroke") : part.getAttribute("fill")) || "";
    const wanted = svg.dataset.alone === inkOf(symbol) ? "" : inkOf(symbol);
    svg.dataset.alone = wanted;
    for (const part of svg.querySelectorAll(".role-mark path, .role-mark line")) {
      const own = [part.getAttribute("stroke"), part.getAttribute("fill")];
      part.style.opacity = !wanted || own.includes(wanted) ? "" : "0.08";
    }
    for (const other of svg.querySelectorAll(".role-legend .role-scope > g")) {
      const drawn = other.querySelector(".role-legend-symbol path");
      other.style.opacity = !wanted || (drawn && inkOf(drawn) === wanted) ? "" : "0.45";
    }
  });

  function mark(view) {
    try { view.signal("chosen", chosen).runAsync(); } catch (_error) { /* this figure has no speakers */ }
  }

  // Limits and a baseline that are chosen beside a figure are its parameters.
  function steer(control) {
    const view = views.get(control.dataset.figure);
    const value = control.value === "" ? null : control.type === "number" ? Number(control.value) : control.value;
    if (view) view.signal(control.dataset.signal, value).runAsync();
  }
  document.addEventListener("input", (event) => { if (event.target.dataset.signal) steer(event.target); });

  // The page answers at once: what is on the screen is drawn first, then the rest one by one, whenever nothing else is to do.
  const pause = () => new Promise((go) => { (window.requestIdleCallback || setTimeout)(() => go(), { timeout: 200 }); });
  async function drawAll() {
    if (document.readyState === "loading") await new Promise((go) => { document.addEventListener("DOMContentLoaded", go, { once: true }); });
    await new Promise((go) => { setTimeout(go); });
    for (let waiting = Object.keys(specs); waiting.length; ) {
      const near = (id) => { const box = document.getElementById(id); return box ? Math.abs(box.getBoundingClientRect().top) : 0; };
      const next = waiting.reduce((best, id) => (near(id) < near(best) ? id : best));
      waiting = waiting.filter((id) => id !== next);
      await draw(next);
      await pause();
    }
    root.dataset.ready = "yes";
  }
  window.veilmeterReady = drawAll();
  // A figure is drawn again when its room changes; printing waits until all are drawn.
  let resizing = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(async () => {
      if (matchMedia("print").matches) return;
      await window.veilmeterReady;
      for (const id of Object.keys(specs)) {
        const box = document.getElementById(id);
        if (!box || Math.abs(box.getBoundingClientRect().width - Number(box.dataset.room)) < 8) continue;
        delete box.dataset.drawn;
        await draw(id);
      }
    }, 250);
  });
  async function printAll() { await window.veilmeterReady; window.print(); }
  const printButton = document.getElementById("print");
  if (printButton) printButton.addEventListener("click", printAll);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "p" && !root.dataset.ready) { event.preventDefault(); printAll(); }
  });
  const themeButton = document.getElementById("theme");
  if (themeButton) themeButton.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // The address holds what was chosen, so that a link leads to the same view: #people;person=P34;candidates=20
  const [firstId, ...given] = location.hash.slice(1).split(";");
  const kept = new Map(given.map((pair) => pair.split("=").map(decodeURIComponent)).filter((pair) => pair.length === 2));
  const idOfHash = () => decodeURIComponent(location.hash.slice(1).split(";")[0]);
  function writeAddress(id) {
    const pairs = [...kept].map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
    if (!id && !pairs.length && !location.hash) return;
    try { history.replaceState(null, "", "#" + [encodeURIComponent(id), ...pairs].join(";")); } catch (_error) { /* an address that can't be changed */ }
  }
  function remember(key, value) {
    if (value === "" || value === null) kept.delete(key); else kept.set(key, String(value));
    writeAddress(idOfHash());
  }
  const controls = [...document.querySelectorAll("#calculator input, #calculator select, [data-signal]")];
  for (const control of controls) {
    if (kept.has(control.id)) control.value = kept.get(control.id);
    control.addEventListener("input", () => remember(control.id, control.value));
  }

  // The technical part is folded; a link to a section opens it. Without script everything stays open.
  const folds = [...document.querySelectorAll(".fold")];
  function unfold(section, open) {
    section.classList.toggle("closed", !open);
    section.querySelector(".folder").setAttribute("aria-expanded", open ? "true" : "false");
  }
  for (const section of folds) {
    unfold(section, false);
    section.querySelector(".folder").addEventListener("click", () => unfold(section, section.classList.contains("closed")));
  }
  function openTarget() {
    const id = idOfHash(), target = id && document.getElementById(id);
    const section = target && target.closest(".fold");
    if (section) unfold(section, true);
    const details = target && target.closest("details");
    if (details) details.open = true;
    for (const row of document.querySelectorAll("tr.found")) row.classList.remove("found");
    if (target && target.matches("tr[data-measure]")) target.classList.add("found");
    if (section || (target && kept.size)) (section && section.id !== id && target.closest("figure, tr") ? target : section || target).scrollIntoView({ block: target && target.matches("tr") ? "center" : "start" });
  }
  window.addEventListener("hashchange", () => { openTarget(); if (kept.size) writeAddress(idOfHash()); });
  document.addEventListener("click", (event) => { const link = event.target.closest('a[href^="#"]'); if (link && decodeURIComponent(link.hash.slice(1)) === idOfHash()) openTarget(); });
  openTarget();
  const unfoldAll = document.getElementById("unfold");
  if (unfoldAll) unfoldAll.addEventListener("click", () => {
    const open = folds.some((section) => section.classList.contains("closed"));
    for (const section of folds) unfold(section, open);
    unfoldAll.textContent = open ? "Close all" : "Open all";
  });

  // The calculator reads curves that were computed beforehand: candidates, share, low, high, basis.
  const release = JSON.parse(document.getElementById("release-data").textContent);
  const fields = ["people", "candidates", "length", "attacker"].map((name) => document.getElementById(`release-${name}`));
  function shareAt(points, candidates) {
    const after = points.findIndex((point) => point[0] >= candidates);
    if (after < 0) return [...points.at(-1).slice(1, 4), "beyond"];
    const last = points[after];
    if (after === 0 || last[0] === candidates) return last.slice(1);
    const first = points[after - 1];
    const part = (Math.log(candidates) - Math.log(first[0])) / (Math.log(last[0]) - Math.log(first[0]));
    return [...[1, 2, 3].map((at) => (1 - part) * first[at] + part * last[at]), last[4]];
  }
  const counted = (value) => Math.round(value).toLocaleString("en-US");
  function calculate() {
    const [total, candidates] = [Math.max(1, Math.floor(Number(fields[0].value) || 1)), Math.max(2, Math.floor(Number(fields[1].value) || 2))];
    const curve = (release.curves[fields[3].value] || {})[fields[2].value];
    const answer = document.getElementById("release-answer"), basis = document.getElementById("release-basis");
    if (!curve) { answer.textContent = release.not_measured; basis.textContent = ""; return; }
    const [value, low, high, kind] = shareAt(curve.points, candidates);
    const listed = Math.min(total, candidates);
    const persons = (number) => `${counted(number)} ${number === 1 ? "person" : "people"}`;
    const unknown = kind !== "measured" && high - low > release.most_open;
    const of = listed === 1 ? 100 : listed;
    const found = `${counted(of * value)} [${counted(of * low)}, ${counted(of * high)}]`;
    const form = unknown ? "unknown" : listed === 1 ? "one" : listed === total ? "all" : "some";
    const text = release.sentences[form].replace("{people}", persons(total)).replace("{listed}", persons(listed)).replace("{found}", found);
    answer.textContent = unknown || kind === "measured" ? text : release.sentences.model + text[0].toLowerCase() + text.slice(1);
    basis.textContent = curve.basis[unknown ? "unknown" : kind];
  }
  if (fields.every(Boolean)) {
    for (const field of fields) field.addEventListener("input", calculate);
    if (fields.some((field) => kept.has(field.id))) calculate();
  }

  // Pages inside this one open in a separate tab; they share this page's scripts.
  const bundled = document.getElementById("bundled-data");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-bundled]");
    if (!button || !bundled) return;
    const vega = document.getElementById("vega").textContent;
    const inner = JSON.parse(bundled.textContent)[button.dataset.bundled], start = '<script id="vega">';
    const place = inner.indexOf(start) + start.length;
    window.open(URL.createObjectURL(new Blob([inner.slice(0, place), vega, inner.slice(place)], { type: "text/html" })), "_blank");
  });

  // One recording as the original and by every system; starting one of them stops the others.
  const soundData = document.getElementById("sound-data"), wanted = document.getElementById("listen-recording");
  const sounds = soundData ? JSON.parse(soundData.textContent) : [];
  const tracks = [...document.querySelectorAll("#listen li[data-track]")];
  function loadRecording() {
    const recording = sounds[wanted.selectedIndex];
    for (const track of tracks) {
      const player = track.querySelector("audio"), number = Number(track.dataset.track);
      track.querySelector(".note").textContent = recording.notes[number];
      if (!player) continue;
      player.src = recording.sounds[number];
      player.setAttribute("aria-label", `${track.dataset.system}, ${recording.title}`);
    }
  }
  function hear(system) {
    const track = tracks.find((row) => row.dataset.system === system && row.querySelector("audio"));
    if (!track) return;
    track.scrollIntoView({ block: "center" });
    track.querySelector("audio").focus({ preventScroll: true });
    track.querySelector("audio").play();
  }
  if (sounds.length) {
    loadRecording();
    wanted.addEventListener("change", loadRecording);
    let position = 0;  // one who switches between systems goes on where they were
    document.getElementById("listen").addEventListener("timeupdate", (event) => { if (!event.target.paused) position = event.target.ended ? 0 : event.target.currentTime; }, true);
    wanted.addEventListener("change", () => { position = 0; });
    document.getElementById("listen").addEventListener("play", (event) => {
      if (position < (event.target.duration || 0)) event.target.currentTime = position;
      for (const track of tracks) {
        const player = track.querySelector("audio");
        track.classList.toggle("playing", player === event.target);
        if (player && player !== event.target) player.pause();
      }
    }, true);
    document.addEventListener("click", (event) => { const button = event.target.closest("button[data-listen]"); if (button) hear(button.dataset.listen); });
  }

  // On paper nothing can be opened: what a file needs is printed; long tables stay here and in results.json.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.print:not([open])")];
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => { for (const part of closed) part.open = false; });

  // People: one choice, shown in table, matrix and zoo.
  const table = document.getElementById("people-table");
  const box = document.getElementById("chosen"), beside = document.getElementById("chosen-dot");
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
    remember("person", chosen);
    for (const dot of document.querySelectorAll(".strip [data-person]")) dot.classList.toggle("chosen", chosen !== "" && dot.dataset.person === chosen);
    show(box, chosen);
    show(beside, chosen);
  }
  window.veilmeterChoose = choose;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function show(box, name) {
    if (!box) return;
    const person = Object.hasOwn(people, name) ? people[name] : null;
    box.replaceChildren();
    if (box === beside) box.hidden = !person;
    if (!person) { if (box.dataset.empty) box.append(element("span", box.dataset.empty, { class: "soft" })); return; }
    const title = element("p"); title.append(element("strong", name), document.createTextNode((person.sentence ? ": " + person.sentence + ". " : " ") + (person.without || "") + " "));
    if (box === beside) title.append(element("a", "In the table and the figures", { href: "#people" }));
    box.append(title);
    if (person.audio.length) {
      const titles = beside ? beside.dataset : { before: "before", after: "after", named: "" };
      const pairs = element("div", "", { class: "pairs" });
      pairs.style.setProperty("--columns", person.audio.some((played) => played.named) ? 3 : 2);
      const cell = (source, caption, which, pair) => {
        const made = element("div");
        made.append(element("span", caption, { class: "soft small" }));
        if (source) made.append(element("audio", "", { controls: "", preload: "none", src: source, "aria-label": `${which}, ${caption}`, ...(pair ? { "data-pair": which } : {}) }));
        return made;
      };
      // Beside the strip one recording is enough until somebody is chosen.
      person.audio.slice(0, box === beside && !chosen ? 1 : person.audio.length).forEach((played, number) => {
        const which = `${name}, recording ${number + 1}`;
        pairs.append(cell(played.original, titles.before, which, true), cell(played.anonymized, titles.after, which, true));
        if (played.named) pairs.append(cell(played.named_sound, `${titles.named} ${played.named}`, which, false));
      });
      box.append(pairs);
    }
  }

  if (table) {
    const body = table.tBodies[0];
    document.addEventListener("click", (event) => {
      const dot = event.target.closest("[data-person]");
      if (!dot || !Object.hasOwn(people, dot.dataset.person)) return;
      choose(dot.dataset.person);
    });
    for (const dot of document.querySelectorAll(".strip [data-person]")) {
      const person = Object.hasOwn(people, dot.dataset.person) && people[dot.dataset.person];
      if (person && person.audio.length) { dot.classList.add("sound"); dot.title += " · can be heard"; }
    }
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

  // Original and anonymized recording of a person share a position: a listener who switches continues at the same place.
  for (const players of [box, beside]) {
    if (!players) continue;
    let at = 0, of = "";
    const pairOf = (player) => player.dataset.pair || "";
    players.addEventListener("timeupdate", (event) => { if (!event.target.paused) { at = event.target.ended ? 0 : event.target.currentTime; of = pairOf(event.target); } }, true);
    players.addEventListener("play", (event) => {
      for (const other of document.querySelectorAll("#chosen audio, #chosen-dot audio")) if (other !== event.target) other.pause();
      if (of && of === pairOf(event.target) && at > 0 && Math.abs(event.target.currentTime - at) > 0.3) event.target.currentTime = at;
    }, true);
  }
  if (kept.has("person") && Object.hasOwn(people, kept.get("person"))) choose(kept.get("person"));
  else if (beside) {  // who is at most risk can be heard at once
    const first = [...document.querySelectorAll(".strip .sound")].find((dot) => Object.hasOwn(people, dot.dataset.person));
    if (first) show(beside, first.dataset.person);
  }

  // A figure in a sentence opens its evidence: what it measures, attacker, interval, chance, method, and its row. All of it
  // is read from the row that the figure links to; without script the link leads there.
  let evidence = null, opener = null;
  function closeEvidence(back) {
    if (!evidence) return;
    evidence.remove();
    evidence = null;
    if (back && opener) opener.focus();
  }
  function showEvidence(link, row) {
    closeEvidence(false);
    opener = link;
    const facts = element("dl");
    const titles = [...row.closest("table").tHead.rows[0].cells].map((head) => head.textContent.trim());
    [...row.cells].forEach((one, number) => {
      const text = one.textContent.trim();
      if (text) facts.append(element("dt", titles[number]), element("dd", text));
    });
    const named = row.cells[0].textContent.replace(/^.*mostly |,.*$/g, "").trim();
    const attacker = document.querySelector(`tr[data-attacker="${CSS.escape(named)}"]`);
    const definition = document.getElementById(`measure-${row.dataset.measure}`);
    evidence = element("div", "", { class: "evidence no-print", role: "dialog", "aria-label": "Evidence", tabindex: "-1" });
    if (definition) { const text = element("p"); text.append(...[...definition.cloneNode(true).childNodes]); evidence.append(text); }
    evidence.append(facts);
    if (attacker) evidence.append(element("p", `${named}: ${attacker.cells[1].textContent}`, { class: "small" }));
    const ways = element("p", "", { class: "tools" }), copying = element("button", "Copy link", { type: "button" }), closing = element("button", "Close", { type: "button" });
    const going = element("a", "Row in the table", { href: `#${row.id}` });
    copying.addEventListener("click", async () => { await copy(location.href.split("#")[0] + `#${row.id}`); copying.textContent = "Copied"; });
    closing.addEventListener("click", () => closeEvidence(true));
    going.addEventListener("click", () => closeEvidence(false));
    ways.append(going, copying, closing);
    evidence.append(ways);
    document.body.append(evidence);
    const at = link.getBoundingClientRect(), own = evidence.getBoundingClientRect();
    evidence.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 12)) + scrollX}px`;
    evidence.style.top = `${(at.bottom + own.height + 12 > innerHeight && at.top > own.height + 12 ? at.top - own.height - 6 : at.bottom + 6) + scrollY}px`;
    evidence.focus({ preventScroll: true });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.number");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const row = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      if (row) { event.preventDefault(); event.stopPropagation(); showEvidence(link, row); return; }
    }
    if (evidence && !evidence.contains(event.target)) closeEvidence(false);
  }, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeEvidence(true); });

  // Every figure gives its data as CSV; no cell may start a formula in a spreadsheet.
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  // A table may be stored by columns: lists side by side, and what is the same in every row once.
  const longest = (row) => Math.max(...Object.values(row).map((value) => (Array.isArray(value) ? value.length : 0)));
  const unfolded = (row) => (longest(row) < 1 ? [row] : Array.from({ length: longest(row) }, (_none, at) =>
    Object.fromEntries(Object.entries(row).map(([key, value]) => [key, Array.isArray(value) ? value[at] : value]))));
  function tables(node) {
    if (!node || typeof node !== "object") return [];
    const own = [...Object.values(node.datasets || {}), node.data && node.data.values].filter((rows) => Array.isArray(rows) && rows.length);
    return own.concat(Object.entries(node).flatMap(([key, part]) => (key === "datasets" || key === "data" ? [] : tables(part))));
  }
  function csvOf(id) {
    const found = new Map();  // tables with the same columns are one
    for (const rows of tables(specs[id]).map((table) => table.flatMap(unfolded))) {
      const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => !key.startsWith("_"));
      const lines = rows.map((row) => keys.map((key) => cell(row[key])).join(","));
      found.set(keys.join(","), [...(found.get(keys.join(",")) || []), ...lines]);
    }
    return [...found].map(([head, lines]) => [head, ...lines].join("\n")).join("\n\n") + "\n";
  }
  window.veilmeterCsv = csvOf;
  function download(name, blob) {
    const link = element("a", "", { download: name.replace(/^figure-/, "") });
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  // A drawing as it is on the page, with the page's variables replaced by the colors they have on paper.
  function svgOf(id) {
    const drawn = document.querySelector(`#${CSS.escape(id)} svg`).cloneNode(true);
    drawn.setAttribute("style", "background: #fff");
    return new XMLSerializer().serializeToString(drawn).replace(/var\(--(\w+)\)/g, (_all, name) => paper[name] || "#000");
  }
  const paper = { ink: "#1d2530", soft: "#55606e", line: "#d9dee5" };
  window.veilmeterSvg = svgOf;
  async function pngOf(id) {
    const drawn = document.querySelector(`#${CSS.escape(id)} svg`).viewBox.baseVal, picture = new Image();
    const source = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgOf(id));
    await new Promise((go, stop) => { picture.onload = go; picture.onerror = stop; picture.src = source; });
    const canvas = Object.assign(document.createElement("canvas"), { width: 3 * drawn.width, height: 3 * drawn.height });
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return new Promise((go) => { canvas.toBlob(go, "image/png"); });
  }
  window.veilmeterPng = pngOf;
  // Every table gives its cells as they are shown: as text to paste into a spreadsheet, or as CSV.
  const cellsOf = (shown) => [...shown.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map((one) => (one.innerText || one.textContent).replace(/\s+/g, " ").trim()));
  const numeric = (text) => (text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text);
  const csvOfTable = (shown) => cellsOf(shown).map((row) => row.map((text) => cell(numeric(text))).join(",")).join("\n") + "\n";
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); } catch (_error) {
      const field = element("textarea", text, { "aria-hidden": "true" });
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
  }
  for (const frame of document.querySelectorAll(".fold .wide, .fold .scroller")) {
    const shown = frame.querySelector("table");
    if (!shown) continue;
    const name = (shown.id || frame.closest(".fold").id || "table").replace(/-table$/, "");
    const tools = element("div", "", { class: "tools" });
    const copying = element("button", "Copy table", { type: "button" }), saving = element("button", "Table as CSV", { type: "button" });
    copying.addEventListener("click", async () => { await copy(cellsOf(shown).map((row) => row.join("\t")).join("\n")); copying.textContent = "Copied"; });
    saving.addEventListener("click", () => download(name + ".csv", new Blob([csvOfTable(shown)], { type: "text/csv" })));
    tools.append(copying, saving);
    frame.after(tools);
  }
  window.veilmeterTable = csvOfTable;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { csv, svg, png } = button.dataset;
    if (csv) download(csv + ".csv", new Blob([csvOf(csv)], { type: "text/csv" }));
    if (svg) download(svg + ".svg", new Blob([svgOf(svg)], { type: "image/svg+xml" }));
    if (png) download(png + ".png", await pngOf(png));
  });
})();
