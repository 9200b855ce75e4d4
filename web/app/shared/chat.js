// What the text chats of all pages share: a log that follows its newest line, and a composer that sends with Enter.
import { box, button, byId } from './dom.js';

/** If the log is scrolled to within this distance of its end (pixels), it follows new lines. */
const nearEnd = 60;

export class ChatPanel {
  log = box('log');
  message = byId('message', HTMLTextAreaElement);
  /** The elements of the lines in the log, by the ids of the lines. @type {Map<number, HTMLElement>} */
  shown = new Map();
  /** Whether the log follows new lines. */
  atEnd = true;

  /** @param {(event: {type: 'say', text: string}) => void} dispatch */
  constructor(dispatch) {
    this.dispatch = dispatch;
    this.log.addEventListener('scroll', () => {
      this.atEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < nearEnd;
    });
    // Keep the newest line visible when the panel opens, a phone's keyboard opens or the phone is turned.
    new ResizeObserver(() => this.follow()).observe(this.log);
    byId('composer', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    this.message.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    this.message.addEventListener('input', () => this.fit());
  }

  clearDraft() {
    this.message.value = '';
    this.fit();
  }

  #send() {
    const text = this.message.value.trim();
    if (!text || button('send').disabled) return;
    this.clearDraft();
    this.dispatch({ type: 'say', text });
  }

  /** Fits the height of the field to its text. The style sheet sets a maximum. */
  fit() {
    this.message.style.height = 'auto';
    if (this.message.value) this.message.style.height = `${this.message.scrollHeight + 2}px`;
  }

  follow() {
    if (this.atEnd) this.log.scrollTop = this.log.scrollHeight;
  }
}
