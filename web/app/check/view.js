// Draws the page `/check`: the rows, the result, and the status line. `render` may be called at any time: it writes only what changed.
import { rows, verdictsOf } from '../../lib/check/verdicts.js';
import { box, button, iconURL, setAttribute, setText, show } from '../shared/dom.js';
import { isRunning, isWaiting } from './state.js';
import { lineOf, reportOf, summaryOf, timeText } from './words.js';

/** @typedef {import('./state.js').State} State */
/** @typedef {import('../../lib/check/verdicts.js').Row} Row */
/** @typedef {import('../../lib/check/verdicts.js').Verdict} Verdict */
/** @typedef {import('./strings.js').Strings} Strings */
/** @typedef {{item: HTMLElement, mark: Element, level: HTMLElement, says: HTMLElement, todo: HTMLElement}} Drawn */

const devices = /** @type {readonly Row[]} */ (['camera', 'microphone', 'speakers']);
const marks = { good: 'check', fair: 'alert', bad: 'cross', none: 'dots', running: 'turn', waiting: 'dots' };

export class View {
  /** @type {Map<Row, Drawn>} */
  #rows = new Map();

  /** @param {Strings} strings @param {string} language @param {(state: State) => string} link returns the link to the result */
  constructor(strings, language, link) {
    this.strings = strings;
    this.language = language;
    this.link = link;
    for (const row of rows) {
      const drawn = this.#makeRow(row);
      this.#rows.set(row, drawn);
      box(devices.includes(row) ? 'device-rows' : 'network-rows').append(drawn.item);
    }
  }

  /** @param {State} state */
  render(state) {
    const { check } = this.strings;
    const { phase, measured } = state;
    setAttribute(document.body, 'data-phase', phase);
    show(button('start'), phase === 'before');
    show(box('intro-text'), phase !== 'shared');
    show(box('checks'), phase !== 'before');
    show(box('result'), phase === 'done' || phase === 'shared');
    show(box('notice'), state.isBadLink);
    const { text, tone } = this.#status(state);
    setText(box('status'), text);
    setAttribute(box('status'), 'data-tone', tone);
    for (const verdict of verdictsOf(measured)) this.#renderRow(state, verdict);
    this.#renderSpeakers(state);
    show(box('camera-video'), phase === 'running' && measured.camera !== 'missing');
    show(box('level-box'), phase === 'running');
    if (phase !== 'done' && phase !== 'shared') return;
    const { sentence, todo } = summaryOf(measured, this.strings);
    setText(box('sentence'), sentence);
    setText(box('todo'), todo);
    show(box('todo'), todo !== '');
    setText(box('report'), reportOf(measured, this.link(state), this.strings, this.language));
    setText(button('again'), phase === 'shared' ? check.checkThis : check.again);
    const when = phase === 'shared' ? check.shared(timeText(measured.at, this.language), measured.browser) : '';
    setText(box('shared-note'), when);
    show(box('shared-note'), when !== '');
    if (state.copying === 'copyFailed') box('details').setAttribute('open', '');
  }

  /** @param {State} state @returns {{text: string, tone: string}} */
  #status({ phase, measured, copying, secondsLeft }) {
    const { status } = this.strings.check;
    if (copying) return { text: status[copying], tone: copying === 'copied' ? 'good' : 'warn' };
    switch (phase) {
      case 'before': return { text: '', tone: 'calm' };
      case 'shared': return { text: status.shared, tone: 'calm' };
      case 'done': return { text: status.done, tone: 'good' };
    }
    // Do not announce each second.
    if (secondsLeft !== null) return { text: status.measuring, tone: 'busy' };
    return { text: measured.camera === 'untested' ? status.allow : status.running, tone: 'busy' };
  }

  /** @param {Row} row @returns {Drawn} */
  #makeRow(row) {
    const { name } = this.strings.check.rows[row];
    const item = document.createElement('li');
    item.className = 'row';
    item.dataset.row = row;
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    svg.setAttribute('class', 'icon mark');
    svg.setAttribute('aria-hidden', 'true');
    const mark = svg.appendChild(document.createElementNS(space, 'use'));
    const words = Object.assign(document.createElement('div'), { className: 'row-words' });
    const top = Object.assign(document.createElement('div'), { className: 'row-top' });
    const heading = Object.assign(document.createElement('h3'), { textContent: name });
    const level = Object.assign(document.createElement('span'), { className: 'row-level' });
    const says = Object.assign(document.createElement('p'), { className: 'row-says' });
    const todo = Object.assign(document.createElement('p'), { className: 'hint' });
    top.append(heading, level);
    words.append(top, says, todo);
    item.append(svg, words);
    const extra = document.getElementById(`extra-${row}`);
    if (extra) words.append(extra);
    return { item, mark, level, says, todo };
  }

  /** @param {State} state @param {Verdict} verdict */
  #renderRow(state, verdict) {
    const { row } = verdict;
    const drawn = this.#rows.get(row);
    if (!drawn) return;
    const { check } = this.strings;
    const line = lineOf(verdict, state.measured, this.strings);
    const is = isRunning(state, row) ? 'running' : isWaiting(state, row) ? 'waiting' : verdict.level;
    const runs = /** @type {Record<string, string>} */ (check.running)[row] ?? '';
    const running = state.secondsLeft !== null && state.testing.includes(row) ? check.secondsLeft(state.secondsLeft) : runs;
    setAttribute(drawn.item, 'data-level', is);
    setAttribute(drawn.mark, 'href', iconURL(marks[is]));
    setText(drawn.level, is === 'running' ? check.levels.running : is === 'waiting' ? '' : line.level);
    show(drawn.level, is !== 'waiting');
    setText(drawn.says, is === 'running' ? running : is === 'waiting' ? check.waiting : line.says);
    setText(drawn.todo, is === 'running' || is === 'waiting' ? '' : line.todo);
    show(drawn.todo, drawn.todo.textContent !== '');
  }

  /** @param {State} state */
  #renderSpeakers({ phase, hasPlayed }) {
    show(box('extra-speakers'), phase !== 'shared');
    show(button('heard'), hasPlayed);
    show(button('not-heard'), hasPlayed);
  }

  /** @param {number} level of the microphone, 0 to 1. The bar shows it on a logarithmic scale, like human hearing */
  showLevel(level) {
    const shown = level > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(level) / 2)) : 0;
    box('level').style.setProperty('--level', shown.toFixed(2));
    box('level').setAttribute('aria-valuenow', String(Math.round(shown * 100)));
  }
}
