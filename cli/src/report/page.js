'use strict';
document.documentElement.classList.add('scripted');

// Each chart: the entry nearest to the pointer, or one step by an arrow key.
document.querySelectorAll('.charted').forEach((charted) => {
  const chart = charted.querySelector('.chart');
  const moments = [...charted.querySelectorAll('.moments li')];
  const places = moments.map((moment) => Number(moment.dataset.x));
  const detail = charted.querySelector('.detail');
  const cross = chart.querySelector('.cross');
  const plot = chart.querySelector('.plot');
  let shown = -1;
  detail.textContent = detail.dataset.none;

  const show = (at) => {
    shown = Math.min(Math.max(at, 0), moments.length - 1);
    detail.replaceChildren(...[...moments[shown].childNodes].map((node) => node.cloneNode(true)));
    cross.style.left = plot.offsetLeft + (plot.clientWidth * places[shown]) / 100 + 'px';
    cross.hidden = false;
  };
  // Entries are evenly spaced.
  chart.addEventListener('pointermove', (event) => {
    const box = plot.getBoundingClientRect();
    show(Math.floor(((event.clientX - box.left) / box.width) * moments.length));
  });
  chart.tabIndex = 0;
  chart.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step) {
      event.preventDefault();
      show(shown + step);
    }
  });
});

// The table: rows that match every choice and hold the text.
const filters = document.querySelector('.filters');
if (filters) {
  const rows = [...document.querySelectorAll('#left tbody tr')];
  const words = rows.map((row) => row.textContent.toLowerCase());
  const filter = () => {
    const chosen = [...filters.querySelectorAll('select')].filter((select) => select.value);
    const text = filters.elements.text.value.trim().toLowerCase();
    let matches = 0;
    rows.forEach((row, at) => {
      const match = chosen.every((select) => row.dataset[select.name] === select.value) && words[at].includes(text);
      row.hidden = !match;
      matches += match;
    });
    filters.querySelector('output').textContent = matches + ' of ' + rows.length;
  };
  filters.addEventListener('input', filter);
  filters.addEventListener('submit', (event) => event.preventDefault());
  filter();
}
