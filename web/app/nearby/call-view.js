// Draws a call, the dialog for an incoming call, and the notice about a second incoming call.
import { box, button, byId, enable, initialOf, setAttribute, setText, show } from '../shared/dom.js';
import { keepingOf, keepWords } from '../shared/keep.js';
import { companion, currentCall, incomingCall } from './call-state.js';
import { duration } from './strings.js';
import { statusOf } from './words.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./strings.js').Strings} Strings */

export class CallView {
  #dialog = byId('incoming', HTMLDialogElement);
  /** @type {number | null} the `line` of the ringing call that the buttons accept or decline */
  #asked = null;

  /** @param {Strings} strings @param {(event: Event) => void} dispatch */
  constructor(strings, dispatch) {
    this.strings = strings;
    this.words = strings.nearby;
    const press = (/** @type {string} */ id, /** @type {() => Event} */ event) => button(id).addEventListener('click', () => dispatch(event()));
    press('mute', () => ({ type: 'mute' }));
    press('camera-off', () => ({ type: 'camera' }));
    press('switch-camera', () => ({ type: 'switchCamera' }));
    press('keep', () => ({ type: 'keep' }));
    press('cancel', () => ({ type: 'cancel' }));
    press('end', () => ({ type: 'end' }));
    for (const prefix of ['', 'waiting-']) {
      press(`${prefix}accept`, () => ({ type: 'accept', line: this.#asked, video: this.#video }));
      press(`${prefix}accept-voice`, () => ({ type: 'accept', line: this.#asked, video: false }));
      press(`${prefix}decline`, () => ({ type: 'decline', line: this.#asked }));
    }
    // The dialog's text has the initial focus, not the Accept button, because a key meant for something else must not
    // accept the call. For the same reason, Escape does not decline it.
    this.#dialog.addEventListener('cancel', (event) => event.preventDefault());
    this.#dialog.addEventListener('close', () => {
      if (this.#wanted && !this.#dialog.open) this.#dialog.showModal();
    });
  }

  #video = true;
  #wanted = false;

  /** @param {State} state @param {number} now */
  render(state, now) {
    const incoming = incomingCall(state);
    const busy = companion(state) !== null;
    if (incoming && incoming.line !== this.#asked) {
      this.#asked = incoming.line;
      this.#video = incoming.video;
    }
    this.#renderIncoming(state, busy ? null : incoming);
    this.#renderWaiting(busy ? incoming : null, state);
    this.#renderCall(state, now);
  }

  /** @param {State} state @param {import('./types.js').Line | null} call */
  #renderIncoming(state, call) {
    // If anything closes the dialog while the call rings, the `close` handler opens it again.
    this.#wanted = call !== null;
    if (!call) {
      if (this.#dialog.open) this.#dialog.close();
      return;
    }
    const { person, video } = call;
    setText(box('incoming-title'), this.words.incoming[video ? 'video' : 'voice'](person.name));
    setText(box('incoming-initial'), initialOf(person.name));
    const failed = state.media.is === 'failed' ? this.words.media[state.media.why] : '';
    setText(box('incoming-note'), failed || (state.ringSilent ? this.words.ringSilent : ''));
    show(button('accept-voice'), video);
    const answering = state.command?.is === 'answer';
    for (const id of ['accept', 'accept-voice']) enable(button(id), !answering);
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** @param {import('./types.js').Line | null} call @param {State} state */
  #renderWaiting(call, state) {
    show(box('waiting'), call !== null);
    setText(box('waiting-text'), call ? this.words.waitingCall(call.person.name) : '');
    show(button('waiting-accept-voice'), call?.video === true);
    for (const id of ['waiting-accept', 'waiting-accept-voice']) enable(button(id), state.command?.is !== 'answer');
  }

  /** @param {State} state @param {number} now */
  #renderCall(state, now) {
    const person = companion(state);
    if (!person) return;
    const call = currentCall(state);
    const active = call?.state === 'active' || call?.state === 'joining';
    setAttribute(box('call'), 'data-is', active ? 'active' : 'ringing');
    setAttribute(box('call'), 'data-away', call?.away ? 'yes' : null);
    setText(box('call-name'), person.name);
    setText(box('call-initial'), initialOf(person.name));
    const shown = call?.state === 'active' && call.withVideo;
    show(box('call-cover'), !shown);
    show(box('partner'), active);
    setText(box('call-cover-text'), call?.state === 'active' ? this.words.voiceOnly : statusOf(state, this.strings).text);
    setText(box('elapsed'), call?.activeAt ? duration(now - call.activeAt) : '');
    this.#renderControls(state, active);
    show(box('you'), state.media.is === 'on' && state.media.camera);
    setAttribute(box('you'), 'data-off', state.cameraOff ? 'yes' : null);
  }

  /** @param {State} state @param {boolean} active */
  #renderControls(state, active) {
    const on = state.media.is === 'on';
    show(button('cancel'), !active);
    show(button('end'), active);
    show(button('mute'), active);
    enable(button('mute'), on);
    setAttribute(button('mute'), 'aria-pressed', String(state.muted));
    show(button('camera-off'), active);
    enable(button('camera-off'), on);
    setAttribute(button('camera-off'), 'aria-pressed', String(state.cameraOff));
    show(button('switch-camera'), active && on && state.media.is === 'on' && state.media.camera && !state.cameraOff);
    const call = currentCall(state);
    const keeping = keepingOf(state.keeping, call?.id);
    const known = state.contacts?.some(({ personId }) => personId === call?.person.personId) ?? false;
    const canKeep = call?.state === 'active' && (!known || keeping.agreed);
    show(button('keep'), canKeep && !keeping.agreed);
    setAttribute(button('keep'), 'aria-pressed', String(keeping.mine));
    const words = keepWords(keeping);
    // The style sheet shows an explanation of the button only on hover or focus, but a status always.
    setAttribute(box('keep-words'), 'data-is', words);
    setText(box('keep-words'), canKeep && call ? this.strings[words](call.person.name) : '');
  }
}
