// The lists: people nearby, the search result, contacts and the call history.
import { at } from '../shared/base.js';
import { box, button, byId, enable, icon, input, setAttribute, setText, show } from '../shared/dom.js';
import { showQr } from '../shared/qr.js';
import { avatar, menu, rowButton, showRows, wordsOf } from '../shared/rows.js';
import { distances } from './state.js';
import { duration } from './strings.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Person} Person */
/** @typedef {import('./types.js').Logged} Logged */
/** @typedef {import('./strings.js').Strings} Strings */

export class ListView {
  #radius = byId('radius', HTMLSelectElement);
  #radiusOf = '';

  /** @param {Strings} strings @param {(event: Event) => void} dispatch */
  constructor(strings, dispatch) {
    this.strings = strings;
    this.words = strings.nearby;
    this.dispatch = dispatch;
    this.when = new Intl.DateTimeFormat(document.documentElement.lang || 'en', { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' });
    this.#radius.addEventListener('change', () => dispatch({ type: 'radius', radius: Number(this.#radius.value) }));
    const press = (/** @type {string} */ id, /** @type {Event} */ event) => button(id).addEventListener('click', () => dispatch(event));
    press('further', { type: 'page', to: 'further' });
    press('nearer', { type: 'page', to: 'nearer' });
    press('use-position', { type: 'usePosition' });
    press('copy', { type: 'copyLink' });
    press('more-calls', { type: 'moreCalls' });
    press('forget-log', { type: 'ask', question: { is: 'forgetLog' } });
    byId('find-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      dispatch({ type: 'find', text: input('find').value });
    });
  }

  /** @param {State} state */
  render(state) {
    if (!state.entered) return;
    switch (state.panel) {
      case 'people': return this.#renderPeople(state);
      case 'contacts': return this.#renderContacts(state);
      case 'log': return this.#renderLog(state);
    }
  }

  /** @param {State} state */
  #renderPeople(state) {
    const { list, position, kept, me } = state;
    this.#fillRadius(kept.unit, kept.radius);
    const covered = list.is === 'off';
    show(box('position-cover'), covered);
    setText(box('position-text'), this.words.positions[position] || this.words.looking);
    show(button('use-position'), position !== 'asking' && position !== 'on' && position !== 'insecure');
    show(this.#radius, !covered);
    show(/** @type {HTMLElement} */ (this.#radius.parentElement), !covered);
    const others = list.people.filter(({ personId }) => personId !== me?.personId);
    showRows(box('people'), covered ? [] : others, ({ personId }) => personId, (row) => this.#nearbyRow(row, kept.unit));
    show(box('people-none'), !covered && others.length === 0);
    setText(box('people-none'), list.is === 'loading' ? this.words.looking : this.words.nobody);
    show(button('nearer'), list.pages.length > 1);
    show(button('further'), list.next !== null && !covered);
    enable(button('further'), list.is === 'here');
    this.#renderFound(state);
    this.#renderOwnLink(me?.personId ?? null);
  }

  /** @param {import('./types.js').Unit} unit @param {number} radius */
  #fillRadius(unit, radius) {
    const key = `${unit} ${radius}`;
    if (this.#radiusOf === key) return;
    this.#radiusOf = key;
    this.#radius.replaceChildren(...distances[unit].map((edge) => {
      const option = new Option(this.words.edge[unit](edge), String(edge));
      option.selected = edge === radius;
      return option;
    }));
  }

  /** @param {import('./types.js').Row} row @param {import('./types.js').Unit} unit */
  #nearbyRow(row, unit) {
    const person = { personId: row.personId, name: row.name, online: true };
    const hint = row.busy ? `${this.words.within[unit](row.distance)} · ${this.words.busy}` : this.words.within[unit](row.distance);
    return [avatar(row.name), wordsOf(row.name, hint), ...this.#callButtons(person, [])];
  }

  /** @param {Person} person @param {[string, () => void][]} more */
  #callButtons(person, more) {
    const { words, dispatch } = this;
    const call = rowButton({ does: 'call', label: words.callName(person.name), text: words.call, icon: 'phone', className: 'button green small' },
      () => dispatch({ type: 'call', person, video: true }));
    /** @type {[string, () => void][]} */
    const items = [
      [words.voice, () => dispatch({ type: 'call', person, video: false })], ...more,
      [words.block, () => dispatch({ type: 'ask', question: { is: 'block', person } })],
    ];
    return [call, menu(words.more(person.name), items)];
  }

  /** @param {State} state */
  #renderFound({ found }) {
    const { words } = this;
    const text = { none: '', searching: words.finding, bad: words.findBad, self: words.findSelf, nobody: words.findNobody, found: '' };
    setText(box('found-text'), text[found.is]);
    showRows(box('found'), found.is === 'found' ? [found.person] : [], ({ personId }) => personId, (person) => this.#personRow(person, []));
  }

  /** @param {Person} person @param {[string, () => void][]} more */
  #personRow(person, more) {
    const hint = person.online ? this.words.online : this.words.offline;
    return [avatar(person.name, person.online), wordsOf(person.name, hint), ...this.#callButtons(person, more)];
  }

  /** @param {string | null} personId */
  #renderOwnLink(personId) {
    const link = personId ? linkTo(personId) : '';
    if (box('own-link').textContent === link) return;
    setText(box('own-link'), link);
    showQr(box('own-qr'), link, this.words.yourLinkQr, this.words.qrLater);
  }

  /** @param {State} state */
  #renderContacts({ contacts }) {
    const people = [...(contacts ?? [])].sort((a, b) => Number(b.online) - Number(a.online) || a.name.localeCompare(b.name));
    const remove = (/** @type {Person} */ { personId }) => () => this.dispatch({ type: 'removeContact', personId });
    showRows(box('contacts'), people, ({ personId }) => personId, (person) => this.#personRow(person, [[this.words.removeContact, remove(person)]]));
    show(box('contacts-none'), contacts !== null && people.length === 0);
  }

  /** @param {State} state */
  #renderLog({ log }) {
    const calls = log.calls ?? [];
    showRows(box('log'), calls, ({ callId }) => callId, (call) => this.#loggedRow(call), (row, call) => {
      setAttribute(row, 'data-missed', call.direction === 'incoming' && call.outcome === 'missed' ? 'yes' : null);
    });
    show(box('log-none'), log.calls !== null && calls.length === 0);
    show(button('more-calls'), log.next !== null);
    show(button('forget-log'), calls.length > 0);
  }

  /** @param {Logged} call */
  #loggedRow(call) {
    const { words, dispatch } = this;
    const when = this.when.format(call.at);
    const parts = [words.outcomes[call.direction][call.outcome], call.video ? null : words.kinds.voice, when,
      call.durationMs === undefined ? null : duration(call.durationMs)];
    const { person } = call;
    const arrow = /** @type {any} */ (icon(call.direction));
    const callBack = rowButton({ does: 'call', label: words.callName(person.name), icon: 'phone', className: 'button green icon-only' },
      () => dispatch({ type: 'call', person, video: call.video }));
    const forget = rowButton({ does: 'forget', label: words.forgetCall(person.name, when), icon: 'cross', className: 'button quiet icon-only' },
      () => dispatch({ type: 'forgetCall', callId: call.callId }));
    return [arrow, wordsOf(person.name, parts.filter(Boolean).join(' · ')), callBack, forget];
  }
}

/** @param {string} personId @returns {string} the link that others open to find this person */
export function linkTo(personId) {
  return new URL(at(`/nearby#person=${personId}`), location.href).href;
}
