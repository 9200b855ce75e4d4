// The panel beside the stage: the chat, or the list of people with the hosts' actions.
import { box, button, icon, setText, show } from '../shared/dom.js';
import { avatar, menu, rowButton, showRows, wordsOf } from '../shared/rows.js';
import { ChatView } from './chat-view.js';
import { itemsFor } from './panel-items.js';
import { isHost } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./panel-items.js').Row} Row */

export class PanelView {
  /**
   * @param {import('./strings.js').Strings} strings
   * @param {(event: Event) => void} dispatch
   * @param {import('./file-view.js').Files} files
   */
  constructor(strings, dispatch, files) {
    this.words = strings.room;
    this.dispatch = dispatch;
    this.chat = new ChatView(strings, dispatch, files);
    button('panel-close').addEventListener('click', () => dispatch({ type: 'panel', is: document.body.dataset.panel }));
    button('mute-all').addEventListener('click', () => dispatch({ type: 'muteOther', connectionId: null }));
    button('open-options').addEventListener('click', () => dispatch({ type: 'dialog', is: 'options' }));
  }

  /** @param {State} state */
  render(state) {
    const { panel } = state;
    if (panel === null) delete document.body.dataset.panel;
    else document.body.dataset.panel = panel;
    show(box('panel'), panel !== null);
    show(box('panel-chat'), panel === 'chat');
    show(box('panel-people'), panel === 'people');
    if (panel) setText(box('panel-title'), this.words[panel]);
    this.chat.render(state);
    if (panel === 'people') this.#renderPeople(state);
  }

  /** @param {State} state */
  #renderPeople(state) {
    const { room, knocks } = state;
    if (!room) return;
    const panel = box('panel-people');
    const hadFocus = panel.contains(document.activeElement);
    show(box('knocks-section'), knocks.length > 0);
    showRows(box('knocks'), knocks, ({ connectionId }) => connectionId, (knock) => this.#knockRow(knock));
    const shares = new Set(state.streams.filter(({ isScreen }) => isScreen).map(({ connectionId }) => connectionId));
    const rows = room.people.map((person) => ({
      ...person, isMe: person.connectionId === room.me, myRole: room.role, shares: shares.has(person.connectionId),
      isMuted: person.connectionId === room.me ? state.muted || state.media.is !== 'on' : !this.#hasAudio(state, person.connectionId),
    }));
    showRows(box('people'), rows, ({ connectionId }) => connectionId, (row) => this.#row(row));
    show(button('mute-all'), isHost(state) && room.people.length > 1);
    show(button('open-options'), isHost(state));
    // Restore the focus, because the row that had it is gone.
    if (hadFocus && !panel.contains(document.activeElement)) (box('knocks').querySelector('button') ?? box('panel')).focus({ preventScroll: true });
  }

  /** @param {State} state @param {string} connectionId */
  #hasAudio({ streams }, connectionId) {
    return streams.some((stream) => stream.connectionId === connectionId && !stream.isScreen && stream.hasAudio);
  }

  /** @param {import('./types.js').Knock} knock */
  #knockRow({ connectionId, displayName }) {
    const words = wordsOf(displayName, '');
    words.id = `knock-${connectionId}`;
    const answer = (/** @type {'admit' | 'deny'} */ type, /** @type {string} */ className) => {
      const element = rowButton({ does: type, text: this.words[type], className }, () => this.dispatch({ type, connectionId }));
      // All these buttons have the same name, so describe each with the person's name.
      element.setAttribute('aria-describedby', words.id);
      return element;
    };
    return [avatar(displayName), words, answer('admit', 'button primary small'), answer('deny', 'button small')];
  }

  /** @param {Row} row */
  #row(row) {
    const { words } = this;
    const hints = [words.roles[row.role], row.state === 'reconnecting' ? words.isAway : '', row.isMuted ? words.isMuted : '', row.handAt === undefined ? '' : words.handUp];
    const name = row.isMe ? words.you(row.displayName) : row.displayName;
    const parts = [avatar(row.displayName), wordsOf(name, hints.filter(Boolean).join(' · '))];
    if (row.handAt !== undefined) parts.push(wrapped(icon('hand')));
    if (row.isMuted) parts.push(wrapped(icon('microphone-off')));
    const items = itemsFor(row).map(([text, event]) => /** @type {[string, () => void]} */ ([words[text], () => this.dispatch(event)]));
    return items.length ? [...parts, menu(words.optionsFor(row.displayName), items)] : parts;
  }
}

/** @param {Node} picture */
function wrapped(picture) {
  const element = document.createElement('span');
  element.className = 'row-icon';
  element.setAttribute('aria-hidden', 'true');
  element.append(picture);
  return element;
}
