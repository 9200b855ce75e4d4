// The text chat: the log and the composer. Text of a stranger is written only with `textContent`.
import { ChatPanel } from '../shared/chat.js';
import { box, button, enable, setAttribute, setText, show } from '../shared/dom.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Line} Line */
/** @typedef {import('../shared/strings.js').Strings} Strings */

/** After this pause (milliseconds), the user no longer counts as typing. */
const typingPause = 3_000;

export class Chat extends ChatPanel {
  /** @type {string | null} */
  #linesOf = null;
  #typing = false;
  #typingTimer = 0;

  /**
   * @param {Strings} strings
   * @param {(event: import('./types.js').Event) => void} dispatch
   * @param {(typing: boolean) => void} tellTyping
   */
  constructor(strings, dispatch, tellTyping) {
    super(dispatch);
    this.strings = strings;
    this.tellTyping = tellTyping;
    this.message.addEventListener('input', () => this.#setTyping(this.message.value.trim() !== ''));
  }

  clearDraft() {
    super.clearDraft();
    this.#setTyping(false);
  }

  /** @param {boolean} typing */
  #setTyping(typing) {
    clearTimeout(this.#typingTimer);
    if (typing) this.#typingTimer = window.setTimeout(() => this.#setTyping(false), typingPause);
    // Report typing on each key press; the SDK throttles these reports. Report the end of typing only once.
    if (typing || this.#typing) this.tellTyping(typing);
    this.#typing = typing;
  }

  /** @param {State} state */
  render(state) {
    const { chat } = state;
    const matched = chat.is === 'matched';
    const open = matched && chat.textChat;
    this.#renderLines(state);
    enable(button('send'), open);
    // The field stays enabled while waiting, so that a phone's keyboard stays open and the user can type a greeting.
    enable(this.message, open || chat.is === 'waiting');
    setText(box('typing'), matched && chat.typing ? this.strings.isTyping(chat.name) : '');
    setAttribute(box('typing'), 'data-on', matched && chat.typing ? 'yes' : null);
    const hint = box('log-hint');
    show(hint, !state.lines.length || (matched && !chat.textChat));
    setText(hint, matched ? (chat.textChat ? this.strings.sayHello : this.strings.noTextChat(chat.name)) : this.strings.chatLater);
  }

  /** @param {State} state */
  #renderLines({ lines, linesOf, last }) {
    if (this.#linesOf !== linesOf || !lines.length) {
      this.#linesOf = linesOf;
      if (this.shown.size) this.log.replaceChildren();
      this.shown.clear();
      this.atEnd = true;
    }
    const kept = new Set(lines.map((line) => line.id));
    for (const [id, element] of this.shown) {
      if (kept.has(id)) continue;
      element.remove();
      this.shown.delete(id);
    }
    let added = false;
    for (const line of lines) {
      const element = this.shown.get(line.id) ?? this.#append(line, last?.name ?? '');
      added ||= element.dataset.sent === undefined;
      if (element.dataset.sent !== line.sent) element.dataset.sent = line.sent;
    }
    if (!added) return;
    if (lines[lines.length - 1].who === 'me') this.atEnd = true;
    this.follow();
  }

  /** @param {Line} line @param {string} name the previous partner's name, which a note contains */
  #append(line, name) {
    const element = document.createElement('p');
    element.className = line.who === 'note' ? 'line over' : `line ${line.who}`;
    if (line.who === 'note') {
      element.textContent = this.strings.over[/** @type {import('./types.js').Ending} */ (line.text)](name);
      // Hide the note from screen readers, because the status line already announces it.
      element.setAttribute('aria-hidden', 'true');
    } else {
      const who = document.createElement('span');
      who.className = 'unseen';
      who.textContent = `${this.strings.sentBy[line.who]} `;
      const words = document.createElement('span');
      words.className = 'words';
      words.dir = 'auto';
      words.textContent = line.text;
      const fate = document.createElement('span');
      fate.className = 'fate';
      fate.textContent = this.strings.notSent;
      element.append(who, words, fate);
    }
    this.log.append(element);
    this.shown.set(line.id, element);
    return element;
  }
}
