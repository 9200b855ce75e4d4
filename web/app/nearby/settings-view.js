// The settings: status, devices, blocked people, stored data.
import { at } from '../shared/base.js';
import { box, button, byId, enable, input, setAttribute, setText, show } from '../shared/dom.js';
import { showQr } from '../shared/qr.js';
import { rowButton, showRows, wordsOf } from '../shared/rows.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./strings.js').Strings} Strings */

export class SettingsView {
  #ringable = byId('ringable', HTMLSelectElement);
  #unit = byId('unit', HTMLSelectElement);
  #question = byId('question', HTMLDialogElement);
  #name = input('own-name');

  /** @param {Strings} strings @param {(event: Event) => void} dispatch */
  constructor(strings, dispatch) {
    this.words = strings.nearby;
    this.dispatch = dispatch;
    this.time = new Intl.DateTimeFormat(document.documentElement.lang || 'en', { timeStyle: 'short' });
    this.date = new Intl.DateTimeFormat(document.documentElement.lang || 'en', { dateStyle: 'medium' });
    const { ringables, units } = this.words;
    this.#ringable.append(...Object.entries(ringables).map(([value, text]) => new Option(text, value)));
    this.#unit.append(...Object.entries(units).map(([value, text]) => new Option(text, value)));
    this.#listen();
  }

  #listen() {
    const { dispatch } = this;
    const change = (/** @type {object} */ members) => dispatch({ type: 'settings', change: members });
    this.#name.addEventListener('change', () => change({ name: this.#name.value.trim() }));
    input('visible').addEventListener('change', () => change({ visible: input('visible').checked }));
    input('do-not-disturb').addEventListener('change', () => change({ doNotDisturb: input('do-not-disturb').checked }));
    this.#ringable.addEventListener('change', () => change({ ringable: this.#ringable.value }));
    this.#unit.addEventListener('change', () => dispatch({ type: 'unit', unit: this.#unit.value }));
    input('push').addEventListener('change', () => dispatch({ type: 'push', on: input('push').checked }));
    byId('settings-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      this.#name.blur();
    });
    byId('code-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      const code = input('code').value.trim();
      if (code) dispatch({ type: 'ask', question: { is: 'link', code } });
    });
    const press = (/** @type {string} */ id, /** @type {Event} */ event) => button(id).addEventListener('click', () => dispatch(event));
    press('forget-position', { type: 'forgetPosition' });
    press('leave', { type: 'leave' });
    press('make-code', { type: 'makeCode' });
    press('export', { type: 'exportAll' });
    press('delete', { type: 'ask', question: { is: 'delete' } });
    press('question-yes', { type: 'agree' });
    press('question-no', { type: 'unask' });
    this.#question.addEventListener('cancel', (event) => {
      event.preventDefault();
      dispatch({ type: 'unask' });
    });
  }

  /** @param {State} state */
  render(state) {
    this.#renderQuestion(state.question);
    if (!state.entered || state.panel !== 'settings' || !state.me) return;
    const { me, kept } = state;
    // Do not overwrite a name that the user is typing.
    if (document.activeElement !== this.#name) this.#name.value = me.name;
    input('visible').checked = me.visible;
    input('do-not-disturb').checked = me.doNotDisturb;
    this.#ringable.value = me.ringable;
    this.#unit.value = kept.unit;
    input('push').checked = state.push === 'on' || state.push === 'onPage' || (state.push === 'busy' && kept.push);
    input('push').disabled = state.push === 'unavailable';
    setText(box('push-hint'), this.words.pushHint[state.push]);
    enable(button('forget-position'), state.list.is !== 'off' || state.position === 'on');
    this.#renderDevices(state);
    this.#renderCode(state.code);
    const names = new Map(kept.blockedNames);
    const blocked = (state.blocked ?? []).map(({ personId, name }) => ({ personId, name: names.get(personId) ?? name }));
    showRows(box('blocked'), blocked, ({ personId }) => personId, (person) => [wordsOf(person.name, ''),
      rowButton({ does: 'unblock', label: this.words.unblockName(person.name), text: this.words.unblock },
        () => this.dispatch({ type: 'unblock', personId: person.personId }))]);
    show(box('blocked-none'), state.blocked !== null && blocked.length === 0);
  }

  /** @param {State} state */
  #renderDevices({ devices }) {
    const { words } = this;
    // An item includes everything that its row depends on, such as `canUnlink`: the only device cannot be unlinked.
    const items = (devices ?? []).map((device) => ({ ...device, canUnlink: (devices ?? []).length > 1 }));
    showRows(box('devices'), items, ({ deviceId }) => deviceId, ({ canUnlink, ...device }) => {
      const name = device.label || words.unnamedDevice;
      const hints = [device.current ? words.thisDevice : device.present ? words.online : words.offline, device.linkedAt ? words.linkedOn(this.date.format(device.linkedAt)) : null];
      const unlink = rowButton({ does: 'unlink', label: words.unlinkName(name), text: words.unlink },
        () => this.dispatch({ type: 'ask', question: { is: 'unlink', device } }));
      return [wordsOf(name, hints.filter(Boolean).join(' · ')), ...(canUnlink ? [unlink] : [])];
    });
  }

  /** @param {State['code']} code */
  #renderCode(code) {
    show(box('code-card'), code !== null);
    if (box('code-text').textContent === (code?.code ?? '')) return;
    setText(box('code-text'), code?.code ?? '');
    setText(box('code-until'), code ? this.words.codeUntil(this.time.format(code.until)) : '');
    const link = code ? new URL(at(`/nearby#link=${code.code}`), location.href).href : '';
    showQr(box('code-qr'), link, this.words.codeQr, this.words.qrLater);
  }

  /** @param {import('./types.js').Question | null} question */
  #renderQuestion(question) {
    if (!question) {
      if (this.#question.open) this.#question.close();
      return;
    }
    const { questions, answers } = this.words;
    setText(box('question-text'), questionText(question, this.words, questions));
    setText(button('question-yes'), answers[question.is]);
    setAttribute(button('question-yes'), 'class', question.is === 'link' ? 'button primary' : 'button danger');
    if (!this.#question.open) this.#question.showModal();
  }
}

/**
 * @param {import('./types.js').Question} question
 * @param {Strings['nearby']} words
 * @param {Strings['nearby']['questions']} questions
 */
function questionText(question, words, questions) {
  switch (question.is) {
    case 'unlink': return questions.unlink(question.device.label || words.unnamedDevice);
    case 'block': return questions.block(question.person.name);
    default: return questions[question.is];
  }
}
