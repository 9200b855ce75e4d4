// Draws the operator's page. `render` may be called at any time: it writes only what changed, so that focus and half-filled fields are
// kept. Text of other people is written only with `textContent`.
import { box, button, input, setAttribute, setText, show } from '../shared/dom.js';
import { rowButton, showRows } from '../shared/rows.js';
import { charts, drawChart, size } from './charts.js';
import { NodesView } from './nodes-view.js';
import { fillDurations, make, makeCard, makeLine } from './parts.js';
import { keyOf, pageOf, tabs, tabsOf } from './state.js';
import {
  bytesText, lengthText, noteText, qualityText, reportsAgainst, shortID, streamText, switchText, timeText, troubleText, valueText,
} from './words.js';

/** @typedef {import('./state.js').State} State */
/** @typedef {import('./state.js').Report} Report */
/** @typedef {import('./state.js').Act} Act */
/** @typedef {import('./state.js').Recording} Recording */
/** @typedef {import('./state.js').Member} Member */
/** @typedef {import('./state.js').Session} Session */

const space = 'http://www.w3.org/2000/svg';

export class View {
  /** @type {Map<string, {value: HTMLElement, range: HTMLElement, svg: Element, line: Element, area: Element}>} */
  #charts = new Map();
  /** The tab that was scrolled into view, and the length of all labels at that time. */
  #scrolledTo = '';
  #nodes;

  /**
   * @param {import('./strings.js').Strings} strings @param {string} language @param {(act: Act) => void} act
   * @param {(report: number) => Promise<Blob>} loadSample
   * @param {(act: import('./state.js').NodeAct) => void} ask asks the operator to confirm @param {(yes: boolean) => void} answer
   */
  constructor(strings, language, act, loadSample, ask, answer) {
    this.words = strings.admin;
    this.language = language;
    this.act = act;
    this.loadSample = loadSample;
    for (const { key } of charts) this.#charts.set(key, this.#makeChart(key));
    fillDurations(box('ban-duration'), this.words);
    this.#nodes = new NodesView(this.words, language, ask, answer);
  }

  /** @param {State} state */
  render(state) {
    const { words } = this;
    const isOpen = state.phase === 'open';
    show(box('door'), !isOpen);
    show(box('desk'), isOpen);
    show(button('lock'), isOpen);
    button('enter').setAttribute('aria-disabled', String(state.phase === 'opening'));
    setText(box('door-error'), state.trouble ? troubleText(state.trouble, words) : '');
    setAttribute(input('token'), 'aria-invalid', state.trouble ? 'true' : null);
    const status = state.phase === 'locked' ? 'locked' : state.phase === 'opening' ? 'opening' : state.isStale ? 'stale' : 'live';
    setText(box('status'), words.status[status]);
    setAttribute(box('status'), 'data-tone', { locked: 'calm', opening: 'busy', stale: 'warn', live: 'good' }[status]);
    show(box('notice'), state.note !== null);
    if (state.note) {
      setText(box('notice-text'), noteText(state.note, words));
      setAttribute(box('notice'), 'data-tone', state.note.tone === 'bad' ? 'bad' : null);
    }
    this.#nodes.render(state);
    if (!isOpen) return;
    this.#renderTabs(state);
    this.#renderOverview(state);
    this.#renderReports(state);
    this.#renderBans(state);
    this.#renderSessions(state);
    this.#renderRecordings(state);
    this.#renderAudit(state);
  }

  /** @param {State} state */
  #renderTabs(state) {
    const open = state.openCount;
    const shown = tabsOf(state);
    let length = 0;
    for (const tab of tabs) {
      const element = button(`tab-${tab}`);
      const isSelected = state.tab === tab;
      const label = tab === 'reports' && open ? this.words.withCount(this.words.tabs[tab], open) : this.words.tabs[tab];
      if (shown.includes(tab)) length += label.length;
      setText(element, label);
      setAttribute(element, 'aria-selected', String(isSelected));
      setAttribute(element, 'tabindex', isSelected ? '0' : '-1');
      show(element, shown.includes(tab));
      show(box(`panel-${tab}`), isSelected);
    }
    this.#scrollTo(state.tab, length);
  }

  /**
   * On a phone, the chosen tab may be out of view. Scrolls only when it is chosen, or when another tab or a longer label has moved it:
   * otherwise the operator could not scroll the tabs.
   * @param {import('./state.js').Tab} tab @param {number} length the number of characters in the labels of all shown tabs
   */
  #scrollTo(tab, length) {
    const place = `${tab} ${length}`;
    if (this.#scrolledTo === place) return;
    this.#scrolledTo = place;
    button(`tab-${tab}`).scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  /** @param {string} key */
  #makeChart(key) {
    const tile = make('div', 'tile');
    const value = make('p', 'value');
    const range = make('p', 'hint');
    const svg = document.createElementNS(space, 'svg');
    svg.setAttribute('class', 'chart');
    svg.setAttribute('viewBox', `0 0 ${size.width} ${size.height}`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('role', 'img');
    const area = svg.appendChild(document.createElementNS(space, 'path'));
    area.setAttribute('class', 'area');
    const line = svg.appendChild(document.createElementNS(space, 'path'));
    line.setAttribute('class', 'line');
    tile.append(make('h2', 'tile-name', /** @type {Record<string, string>} */ (this.words.charts)[key]), value, svg, range);
    box('charts').append(tile);
    return { value, range, svg, line, area };
  }

  /** @param {State} state */
  #renderOverview({ overview }) {
    if (!overview) return;
    const { words, language } = this;
    for (const chart of charts) {
      const drawn = this.#charts.get(chart.key);
      if (!drawn) continue;
      const { now, low, high, line, area } = drawChart(overview, chart);
      const text = (/** @type {number | null} */ value) => valueText(value, chart.unit, words, language);
      const range = now === null ? '' : words.range(text(low), text(high));
      setText(drawn.value, text(now));
      setText(drawn.range, range);
      setAttribute(drawn.line, 'd', line);
      setAttribute(drawn.area, 'd', area);
      setAttribute(drawn.svg, 'aria-label', words.chart(/** @type {Record<string, string>} */ (words.charts)[chart.key], text(now), range));
    }
    show(box('certificate-trouble'), overview.certificateTrouble !== undefined);
    setText(box('certificate-trouble'), overview.certificateTrouble === undefined ? '' : words.certificateTrouble(overview.certificateTrouble));
    setText(box('about'), words.about(overview.version, timeText(overview.startedAt, language)));
  }

  /** @param {State} state */
  #renderReports(state) {
    const { words } = this;
    const reports = state.reports ?? [];
    input('show-closed').checked = state.showClosed;
    show(box('no-reports'), state.reports !== null && reports.length === 0);
    setText(box('no-reports'), state.showClosed ? words.noReportsAtAll : words.noReports);
    const items = reports.map((report) => ({ report, count: reportsAgainst(report, reports) }));
    showRows(box('report-rows'), items, ({ report }) => String(report.id), (item) => this.#fillReport(item), (row, { report }) => {
      setAttribute(row, 'data-busy', state.busy.includes(`report ${report.id}`) ? 'yes' : null);
    });
  }

  /** @param {{report: Report, count: number}} item @returns {HTMLElement[]} */
  #fillReport({ report, count }) {
    const { words, language } = this;
    const card = makeCard(words.report(report.id), timeText(report.at, language));
    if (report.closedAt !== undefined) card.tag(words.closed(timeText(report.closedAt, language)));
    if (report.banned) card.tag(words.banned, 'bad');
    if (count > 1) card.tag(words.repeated(count), 'fair');
    card.add(make('p', 'says', report.reason || words.noReason));
    const facts = make('dl', 'facts');
    for (const [name, id, address] of [[words.reported, report.against, report.againstAddress], [words.reporter, report.by, report.byAddress]]) {
      facts.append(make('dt', '', name), make('dd', 'mono', address ? `${id} ${words.from(address)}` : id));
    }
    card.add(facts);
    const evidence = document.createElement('details');
    evidence.open = report.closedAt === undefined && report.lines.length > 0;
    const summary = make('summary', '', words.evidence(report.lines.length));
    summary.dataset.do = 'evidence';
    const lines = make('ol', 'chat-lines');
    for (const { from, text } of report.lines) {
      const line = make('li', from);
      line.append(make('span', 'who', from === 'reported' ? words.reported : words.reporter), make('span', 'text', text));
      lines.append(line);
    }
    evidence.append(summary, lines);
    card.add(evidence);
    if (report.sample) card.add(...this.#sampleParts(report.id, report.sample));
    if (report.closedAt !== undefined) return card.parts;

    const form = make('div', 'fields');
    const duration = document.createElement('select');
    duration.id = `duration-${report.id}`;
    fillDurations(duration, words);
    const reason = Object.assign(document.createElement('input'), { type: 'text', id: `reason-${report.id}`, maxLength: 120, value: report.reason.slice(0, 120) });
    // Keep what the operator has entered when the card is drawn again.
    const warning = Object.assign(document.createElement('input'), { type: 'text', id: `warning-${report.id}`, maxLength: 100 });
    const [formerDuration, formerReason] = [document.getElementById(duration.id), document.getElementById(reason.id)];
    const formerWarning = document.getElementById(warning.id);
    if (formerDuration instanceof HTMLSelectElement) duration.value = formerDuration.value;
    if (formerReason instanceof HTMLInputElement) reason.value = formerReason.value;
    if (formerWarning instanceof HTMLInputElement) warning.value = formerWarning.value;
    [duration.dataset.do, reason.dataset.do, warning.dataset.do] = ['duration', 'reason', 'warning'];
    const fields = /** @type {[string, HTMLElement][]} */ ([[words.duration, duration], [words.reasonField, reason], [words.warningField, warning]]);
    for (const [label, field] of fields) {
      const part = make('div', 'field');
      const name = Object.assign(document.createElement('label'), { htmlFor: field.id, textContent: label });
      part.append(name, field);
      form.append(part);
    }
    const actions = make('div', 'actions');
    actions.append(
      rowButton({ does: 'ban', text: words.ban, label: words.banReport(report.id), className: 'button danger' }, () => {
        this.act({ kind: 'ban', report: report.id, reason: reason.value.trim(), duration: duration.value });
      }),
      rowButton({ does: 'warn', text: words.warn, label: words.warnReport(report.id), className: 'button' }, () => {
        this.act({ kind: 'warn', report: report.id, text: warning.value.trim() });
      }),
      rowButton({ does: 'dismiss', text: words.dismiss, label: words.dismissReport(report.id), className: 'button' }, () => {
        this.act({ kind: 'dismiss', report: report.id });
      }),
    );
    card.add(form, actions);
    return card.parts;
  }

  /**
   * Makes what shows the sample of the reported person's camera. The image is loaded only on request: operators should not have to see
   * every one.
   * @param {number} id @param {import('./state.js').CameraSample} sample @returns {HTMLElement[]}
   */
  #sampleParts(id, { at, verdict, warnings, blurs }) {
    const { words } = this;
    const part = make('div', 'sample');
    const counts = warnings + blurs > 0 ? ` ${words.verdictCounts(warnings, blurs)}` : '';
    part.append(make('p', 'hint', words.sampled(timeText(at, this.language), words.verdicts[verdict ?? 'none']) + counts));
    const problem = make('p', 'error');
    problem.setAttribute('role', 'alert');
    /** @type {HTMLImageElement | null} */
    let image = null;
    const toggle = rowButton({ does: 'sample', text: words.showSample, label: `${words.showSample}: ${words.report(id)}`, className: 'button' }, async () => {
      problem.textContent = '';
      if (image) {
        URL.revokeObjectURL(image.src);
        image.remove();
        image = null;
      } else {
        try {
          const shown = Object.assign(document.createElement('img'), { alt: words.sampleOf(id), className: 'sample-image' });
          shown.src = URL.createObjectURL(await this.loadSample(id));
          image = shown;
          part.append(shown);
        } catch {
          problem.textContent = words.sampleFailed;
        }
      }
      const text = image ? words.hideSample : words.showSample;
      toggle.textContent = text;
      toggle.setAttribute('aria-label', `${text}: ${words.report(id)}`);
    });
    part.append(toggle, problem);
    return [part];
  }

  /** @param {State} state */
  #renderBans({ bans, busy }) {
    const { words, language } = this;
    const shown = bans?.bans ?? [];
    show(box('no-bans'), bans !== null && shown.length === 0);
    show(box('more-bans'), bans !== null && bans.count > shown.length);
    setText(box('more-bans'), bans ? words.moreBans(shown.length, bans.count) : '');
    showRows(box('ban-rows'), shown, ({ subject }) => subject, ({ subject, reason, until }) => [
      ...makeLine(subject, [until === undefined ? words.permanent : words.until(timeText(until, language)), reason], 'mono'),
      rowButton({ does: 'lift', text: words.lift, label: words.liftBan(subject) }, () => this.act({ kind: 'lift', subject })),
    ], (row, { subject }) => setAttribute(row, 'data-busy', busy.includes(keyOf({ kind: 'lift', subject })) ? 'yes' : null));
  }

  /** @param {State} state */
  #renderSessions({ sessions }) {
    const { words, language } = this;
    const shown = sessions?.sessions ?? [];
    show(box('no-sessions'), sessions !== null && shown.length === 0);
    this.#renderPages(sessions);
    showRows(box('session-rows'), shown, ({ id }) => id, (session) => this.#fillSession(session));
    const switches = sessions?.switches ?? [];
    show(box('no-switches'), sessions !== null && switches.length === 0);
    const keyed = switches.map((change, index) => ({ ...change, key: `${change.at} ${change.subscriber} ${change.streamId} ${index}` }));
    showRows(box('switch-rows'), keyed, ({ key }) => key, (change) => (
      makeLine(switchText(change, words), [timeText(change.at, language), words.receiver(shortID(change.subscriber))])
    ));
  }

  /** @param {import('./state.js').Sessions | null} sessions */
  #renderPages(sessions) {
    const isPaged = sessions !== null && sessions.count > sessions.pageSize;
    show(box('session-pages'), isPaged);
    if (!isPaged) return;
    const { first, last, previous, next } = pageOf(sessions);
    setText(box('page-place'), this.words.page(first, last, sessions.count));
    // Not `disabled`, which would lose the focus.
    setAttribute(button('page-previous'), 'aria-disabled', String(previous === null));
    setAttribute(button('page-next'), 'aria-disabled', String(next === null));
  }

  /** @param {Session} session @returns {HTMLElement[]} */
  #fillSession(session) {
    const { words } = this;
    const card = makeCard(session.room === undefined ? words.session : words.room(session.room), `${words.members(session.memberCount)}, ${words.streams(session.streamCount)}`);
    const mode = /** @type {Record<string, string>} */ (words.modes)[session.mediaMode];
    if (mode) card.tag(mode);
    if (session.recorded) card.tag(words.recorded, 'bad');
    if (session.broadcast) card.tag(words.broadcast, 'bad');
    card.add(make('p', 'hint mono', session.id));
    const people = make('ul', 'members');
    for (const member of session.members) people.append(this.#memberRow(member));
    card.add(people);
    const others = session.memberCount - session.members.length;
    if (others > 0) card.add(make('p', 'hint', words.moreMembers(others)));
    return card.parts;
  }

  /** @param {Member} member */
  #memberRow(member) {
    const { words } = this;
    const row = make('li', 'member');
    const name = make('p', 'member-name', member.name || words.nameless);
    name.append(make('span', 'hint mono', ` ${shortID(member.identity)}`));
    if (member.reconnecting) name.append(' ', make('span', 'chip fair', words.reconnecting));
    row.append(name);
    for (const stream of member.streams) {
      const line = make('p', 'hint', `${streamText(stream, words)} `);
      if (stream.audio || stream.video) line.append(make('span', `chip ${stream.quality}`, qualityText(stream, words)));
      row.append(line);
    }
    const receives = words.watching(member.subscriptions);
    row.append(make('p', 'hint', member.lastSwitch ? `${receives}; ${switchText(member.lastSwitch, words)}` : receives));
    return row;
  }

  /** @param {State} state */
  #renderRecordings({ recordings }) {
    for (const [kind, items] of /** @type {['archive' | 'broadcast', Recording[] | undefined][]} */ (
      [['archive', recordings?.archives], ['broadcast', recordings?.broadcasts]])) {
      show(box(`no-${kind}s`), items?.length === 0);
      showRows(box(`${kind}-rows`), items ?? [], ({ id }) => id, (item) => makeLine(item.name || item.id, [
        item.reason ? `${item.status}: ${item.reason}` : item.status, timeText(item.at, this.language),
        item.durationMs ? lengthText(item.durationMs) : '', item.bytes ? bytesText(item.bytes, this.language) : '',
      ]));
    }
  }

  /** @param {State} state */
  #renderAudit({ audit }) {
    show(box('no-audit'), audit?.length === 0);
    const keyed = (audit ?? []).map((entry, index, all) => ({ ...entry, key: all.length - index }));
    showRows(box('audit-rows'), keyed, ({ key }) => String(key), ({ at, actor, action, subject, detail }) => (
      makeLine(`${action} ${subject}`, [timeText(at, this.language), actor, detail], 'mono')
    ));
  }
}
