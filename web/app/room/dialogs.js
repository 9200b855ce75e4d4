// The dialogs: invitation, room settings, device settings, keyboard shortcuts, and confirmations.
import { box, button, byId, input, setAttribute, setText, show } from '../shared/dom.js';
import { showQr } from '../shared/qr.js';
import { candidates, codecChoices, codecsToSend, protocols, rates, sizes } from './settings.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./strings.js').Strings} Strings */

/** The maximum capacity of a room on the server, for each media mode (protocol §15). */
const maxCapacity = { routed: 100, mesh: 6 };
const names = /** @type {const} */ (['invite', 'options', 'settings', 'keys']);
/** The names of the room options that are either on or off. */
const switches = /** @type {const} */ (['locked', 'lobby', 'chat', 'persistent']);

export class Dialogs {
  #question = byId('question-dialog', HTMLDialogElement);
  /** @type {State | null} */
  #state = null;

  /** @param {Strings} strings @param {(event: Event) => void} dispatch @param {() => string} link returns the invitation link */
  constructor(strings, dispatch, link) {
    this.words = strings.room;
    this.dispatch = dispatch;
    this.link = link;
  }

  /** @param {State} state */
  setUp({ kept }) {
    for (const name of names) {
      const dialog = this.#dialog(name);
      // The event comes some time after the closing. By then, the dialog may be open again.
      dialog.addEventListener('close', () => {
        if (this.#state?.dialog === name && !dialog.open) this.dispatch({ type: 'dialog', is: null });
      });
      dialog.querySelector('[data-close]')?.addEventListener('click', () => dialog.close());
    }
    this.#setUpInvite();
    this.#setUpOptions();
    this.#setUpSettings(kept.settings);
    this.#setUpKeys();
    this.#setUpQuestion();
  }

  /** @param {Dialog} name */
  #dialog(name) {
    return byId(`${name}-dialog`, HTMLDialogElement);
  }

  #setUpInvite() {
    const link = input('invite-link');
    link.addEventListener('focus', () => link.select());
    const share = button('invite-share');
    show(share, typeof navigator.share === 'function');
    share.addEventListener('click', () => {
      const text = this.words.inviteText(this.#state?.room?.name ?? '');
      navigator.share({ title: 'Confab', text, url: this.link() }).catch(() => {}); // Rejects if the user cancels.
    });
  }

  #setUpOptions() {
    const set = (/** @type {object} */ change) => this.dispatch({ type: 'options', change });
    for (const name of switches) {
      const box = input(`option-${name}`);
      box.addEventListener('change', () => set({ [name]: box.checked }));
    }
    input('option-share').addEventListener('change', () => set({ share: input('option-share').checked ? 'hosts' : 'all' }));
    input('option-capacity').addEventListener('change', () => {
      const capacity = Math.round(input('option-capacity').valueAsNumber);
      if (capacity >= 1 && capacity <= this.#maxCapacity) set({ capacity });
    });
    byId('password-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      const password = input('option-password').value;
      if (password) set({ password });
      input('option-password').value = '';
    });
    button('password-none').addEventListener('click', () => set({ password: '' }));
  }

  get #maxCapacity() {
    return maxCapacity[this.#state?.room?.options.media ?? 'routed'];
  }

  /** @param {import('./types.js').Settings} settings */
  #setUpSettings(settings) {
    const { words } = this;
    this.#fill('size', sizes.map((size) => [size, size.replace('x', ' × ')]), settings.size, (size) => ({ size }));
    this.#fill('rate', rates.map((rate) => [String(rate), String(rate)]), String(settings.rate), (rate) => ({ rate: Number(rate) }));
    this.#fillCodecs('video', words.videoCodecNames, settings.videoCodec, (videoCodec) => ({ videoCodec }));
    this.#fillCodecs('audio', words.audioCodecNames, settings.audioCodec, (audioCodec) => ({ audioCodec }));
    this.#fill('candidates', candidates.map((name) => [name, words.candidateNames[name]]), settings.candidates, (is) => ({ candidates: is }));
    this.#fill('protocol', protocols.map((name) => [name, words.protocolNames[name]]), settings.protocol, (protocol) => ({ protocol }));
  }

  /** @param {string} name @param {string[][]} choices @param {string} chosen @param {(value: string) => object} change */
  #fill(name, choices, chosen, change) {
    const select = byId(`setting-${name}`, HTMLSelectElement);
    select.append(...choices.map(([value, text]) => new Option(text, value, value === chosen, value === chosen)));
    select.addEventListener('change', () => this.dispatch({ type: 'settings', change: change(select.value) }));
  }

  /** @param {'video' | 'audio'} kind @param {Record<string, string>} names @param {string} chosen @param {(value: string) => object} change */
  #fillCodecs(kind, names, chosen, change) {
    const choices = codecChoices(names, codecsToSend(kind), this.words.codecMissing);
    this.#fill(`${kind}-codec`, choices.map(({ value, text }) => [value, text]), chosen, change);
    const select = byId(`setting-${kind}-codec`, HTMLSelectElement);
    for (const [index, { isMissing }] of choices.entries()) select.options[index].disabled = isMissing;
    const hint = `${kind}-codec-hint`;
    const tell = () => {
      const isReplaced = select.selectedOptions[0]?.disabled === true;
      show(box(hint), isReplaced);
      // Remove the reference to the hint while it is hidden, because screen readers read hidden descriptions too.
      setAttribute(select, 'aria-describedby', isReplaced ? hint : null);
    };
    select.addEventListener('change', tell);
    tell();
  }

  #setUpKeys() {
    const on = input('keys-on');
    on.addEventListener('change', () => this.dispatch({ type: 'keys', on: on.checked }));
    for (const [key, name] of Object.entries(this.words.keyNames)) {
      const term = document.createElement('dt');
      const kbd = document.createElement('kbd');
      kbd.textContent = key === 'Escape' ? this.words.escape : key.toUpperCase();
      term.append(kbd);
      const description = document.createElement('dd');
      description.textContent = name;
      byId('keys-list', HTMLDListElement).append(term, description);
    }
  }

  #setUpQuestion() {
    byId('question-form', HTMLFormElement).addEventListener('submit', () => this.dispatch({ type: 'answer', ban: input('ban').checked }));
    button('question-no').addEventListener('click', () => this.#question.close());
    this.#question.addEventListener('close', () => {
      if (this.#state?.question && !this.#question.open) this.dispatch({ type: 'unask' });
    });
  }

  /** @param {State} state */
  render(state) {
    const before = this.#state;
    this.#state = state;
    for (const name of names) this.#open(this.#dialog(name), state.dialog === name);
    if (state.dialog === 'invite' && before?.dialog !== 'invite') this.#renderLink();
    if (state.dialog === 'invite') this.#renderInvite(state);
    if (state.dialog === 'options') this.#renderOptions(state);
    if (state.dialog === 'settings') this.#renderDeviceTrouble(state);
    if (state.dialog === 'keys') input('keys-on').checked = state.kept.keys;
    this.#renderQuestion(state.question, before?.question ?? null);
  }

  /** @param {HTMLDialogElement} dialog @param {boolean} isOpen */
  #open(dialog, isOpen) {
    if (isOpen && !dialog.open) dialog.showModal();
    if (!isOpen && dialog.open) dialog.close();
  }

  #renderLink() {
    input('invite-link').value = this.link();
    button('invite-copy').focus();
    showQr(box('invite-qr'), this.link(), this.words.qr, this.words.qrLater);
  }

  /** @param {State} state */
  #renderInvite({ room, passing, trouble }) {
    const { words } = this;
    const note = room?.options.locked ? words.inviteLocked : room?.options.password ? words.invitePassword : '';
    setText(box('invite-note'), note);
    show(box('invite-note'), note !== '');
    const reported = passing?.is === 'copied' ? words.status.copied : trouble?.code === 'copy_failed' ? words.troubles.copy_failed : '';
    setText(box('invite-status'), reported);
  }

  /** @param {State} state */
  #renderOptions({ room, trouble }) {
    if (!room) return;
    const { words } = this;
    const { options } = room;
    for (const name of switches) input(`option-${name}`).checked = options[name];
    input('option-share').checked = options.share === 'hosts';
    const capacity = input('option-capacity');
    // Do not overwrite a number that the user is typing.
    if (document.activeElement !== capacity) capacity.value = String(options.capacity);
    capacity.max = String(this.#maxCapacity);
    setText(box('capacity-hint'), words.capacityHint(this.#maxCapacity));
    setText(box('password-is'), options.password ? words.hasPassword : words.noPassword);
    show(button('password-none'), options.password);
    setText(box('options-trouble'), trouble ? words.troubles[/** @type {'not_permitted'} */ (trouble.code)] ?? trouble.message : '');
  }

  /**
   * Shows device problems inside the dialog, because the dialog covers the notice.
   * @param {State} state
   */
  #renderDeviceTrouble({ trouble }) {
    const isOfDevice = trouble !== null && ['camera_failed', 'microphone_failed'].includes(trouble.code);
    setText(box('settings-trouble'), isOfDevice ? this.words.troubles[/** @type {'camera_failed'} */ (trouble.code)] : '');
  }

  /** @param {State['question']} question @param {State['question']} before */
  #renderQuestion(question, before) {
    this.#open(this.#question, question !== null);
    if (!question) return;
    const { words } = this;
    const isRemoval = question.is === 'remove';
    if (question !== before) input('ban').checked = false;
    setText(box('question-title'), isRemoval ? words.removeTitle(question.name) : words.hostTitle(question.name));
    show(box('ban-label'), isRemoval);
    setText(button('question-yes'), isRemoval ? words.remove : words.makeHost);
    setAttribute(button('question-yes'), 'class', isRemoval ? 'button danger' : 'button primary');
  }
}
