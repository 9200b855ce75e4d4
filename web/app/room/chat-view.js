// The text chat: the log and the composer. Text from other people is written only with `textContent`, so links are not clickable.
import { ChatPanel } from '../shared/chat.js';
import { box, button, enable, setAttribute, setText, show } from '../shared/dom.js';
import { FileView } from './file-view.js';
import { showsName } from './words.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').ChatLine} ChatLine */

export class ChatView extends ChatPanel {
  #time;

  /**
   * @param {import('./strings.js').Strings} strings
   * @param {(event: import('./types.js').Event) => void} dispatch
   * @param {import('./file-view.js').Files} files
   */
  constructor(strings, dispatch, files) {
    super(dispatch);
    this.files = new FileView(strings, files);
    this.strings = strings;
    this.#time = new Intl.DateTimeFormat(document.documentElement.lang, { hour: 'numeric', minute: '2-digit' });
  }

  /**
   * Handles a message that could not be sent: puts its text back into the field, unless the user has started to type
   * another message.
   * @param {string} text
   */
  restore(text) {
    if (this.message.value.trim() === '') this.message.value = text;
    this.fit();
  }

  /** @param {State} state */
  render(state) {
    const { lines, room } = state;
    this.files.render(state);
    const isOn = room?.options.chat ?? false;
    enable(button('send'), isOn);
    enable(this.message, isOn);
    show(box('log-hint'), lines.length === 0 || !isOn);
    setText(box('log-hint'), isOn ? this.strings.room.chatEmpty : this.strings.room.chatOff);
    this.#renderLines(lines, room);
  }

  /** @param {ChatLine[]} lines @param {State['room']} room */
  #renderLines(lines, room) {
    const kept = new Set(lines.map(({ id }) => id));
    for (const [id, element] of this.shown) {
      if (kept.has(id)) continue;
      const hadFocus = element.contains(document.activeElement);
      element.remove();
      this.shown.delete(id);
      if (hadFocus) this.log.focus({ preventScroll: true });
    }
    const added = lines.filter(({ id }) => !this.shown.has(id));
    for (const line of added) this.#append(line);
    // Update existing lines too: the line above one of them, which showed the name, may have been removed.
    for (const [index, line] of lines.entries()) {
      setAttribute(/** @type {Element} */ (this.shown.get(line.id)?.firstElementChild), 'class', showsName(line, lines[index - 1]) ? 'who' : 'unseen');
    }
    // Update the Remove buttons of all files, because the user's role may change while lines are shown. After
    // rejoining, the user has a new connectionId, and the server treats the user's earlier files as another person's.
    const moderates = (room?.role ?? 'guest') !== 'guest';
    for (const { id, file, connectionId } of lines) {
      if (file) this.files.allow(/** @type {HTMLElement} */ (this.shown.get(id)), moderates || connectionId === room?.me);
    }
    if (added.at(-1)?.mine) this.atEnd = true;
    if (added.length) this.follow();
  }

  /** @param {ChatLine} line */
  #append(line) {
    const element = document.createElement('p');
    element.className = line.mine ? 'line me' : 'line';
    const who = document.createElement('span');
    who.textContent = `${this.strings.room.sentBy(line.mine ? this.strings.you : line.name)} `;
    const words = line.file ? this.files.element(line) : document.createElement('span');
    if (!line.file) {
      words.className = 'words';
      words.dir = 'auto';
      words.textContent = line.text;
    }
    const time = document.createElement('time');
    time.dateTime = new Date(line.at).toISOString();
    time.textContent = this.#time.format(line.at);
    element.append(who, words, time);
    this.log.append(element);
    this.shown.set(line.id, element);
  }
}
