// Searches the headings of all pages and the text below them, without a server. search-index.js has
// one [address, page, heading, text] for each heading.
"use strict";
(() => {
  const shown = 20;
  const root = document.currentScript.dataset.root;
  const input = document.getElementById("search");
  const results = document.getElementById("results");

  // A word of the query has to begin a word of the text.
  const pattern = (word) =>
    new RegExp("(?<![\\p{L}\\p{N}])" + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");

  const count = (text, found) => (text.match(new RegExp(found, "giu")) || []).length;

  // 0 unless each word is there; a word in a heading counts more than many in the text.
  const score = ([, page, heading, text], words) =>
    words.reduce((sum, word) => {
      const one = 8 * count(page, word) + 6 * count(heading, word) + Math.min(3, count(text, word));
      return one && sum !== null ? sum + one : null;
    }, 0) || 0;

  const around = (text, word) => {
    const at = Math.max(0, text.search(word) - 60);
    return (at > 0 ? "…" : "") + text.slice(at, at + 160) + (at + 160 < text.length ? "…" : "");
  };

  const show = () => {
    const words = input.value.trim().split(/\s+/).filter(Boolean).map(pattern);
    const found = words.length === 0 ? [] : window.searchIndex
      .map((entry) => ({ entry, points: score(entry, words) }))
      .filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points)
      .slice(0, shown);
    results.replaceChildren(...found.map(({ entry: [address, page, heading, text] }) => {
      const link = document.createElement("a");
      link.href = root + address;
      link.textContent = heading && heading !== page ? page + ": " + heading : page;
      const sentence = document.createElement("div");
      sentence.textContent = around(text, words[0]);
      const item = document.createElement("li");
      item.append(link, sentence);
      return item;
    }));
    if (words.length > 0 && found.length === 0) {
      results.textContent = "Nothing was found.";
    }
    results.hidden = words.length === 0;
  };

  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = results.querySelector("a");
    if (first) {
      location.href = first.href;
    }
  });
  input.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape") {
      input.value = "";
      show();
    }
  });
  // What another page or a bookmark asks for: index.html?q=WORDS.
  input.value = new URLSearchParams(location.search).get("q") || "";
  show();
  if (matchMedia("(max-width: 60em)").matches) {
    document.getElementById("menu").open = false;
  }
})();
