// The report dialog. It opens and closes with the state machine's question, so it always refers to one specific person.
import { box, button, byId, enable, input, setText } from '../shared/dom.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('../shared/strings.js').Strings} Strings */

export class Report {
  #dialog = byId('report-dialog', HTMLDialogElement);
  #form = byId('report-form', HTMLFormElement);

  /**
   * @param {Strings} strings
   * @param {(event: import('./types.js').Event) => void} dispatch
   */
  constructor(strings, dispatch) {
    this.strings = strings;
    box('reasons').append(...Object.entries(strings.reasons).map(([code, words]) => reason(code, words)));
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      const chosen = new FormData(this.#form).get('reason');
      if (typeof chosen === 'string') dispatch({ type: 'report', reason: chosen, alsoBlock: input('also-block').checked });
      else this.#needChoice();
    });
    this.#form.addEventListener('change', () => setText(box('report-error'), ''));
    button('report-cancel').addEventListener('click', () => dispatch({ type: 'unask' }));
    // Escape must not close the dialog directly. Instead, `unask` makes the state machine withdraw its question, which
    // closes the dialog.
    this.#dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      dispatch({ type: 'unask' });
    });
  }

  #needChoice() {
    setText(box('report-error'), this.strings.reportChoose);
    this.#form.querySelector('input')?.focus();
  }

  /** @param {State} state */
  render({ question, reporting }) {
    const asked = question?.is === 'report';
    if (asked && !this.#dialog.open) {
      this.#form.reset();
      setText(box('report-title'), this.strings.reportTitle(question.name));
      setText(box('report-error'), '');
      this.#dialog.showModal();
    } else if (!asked && this.#dialog.open) {
      this.#dialog.close();
    }
    if (reporting === 'failed') setText(box('report-error'), this.strings.reportFailed);
    enable(button('report-send'), reporting !== 'sending');
  }
}

/** @param {string} code @param {string} words */
function reason(code, words) {
  const label = document.createElement('label');
  label.className = 'check';
  const radio = document.createElement('input');
  radio.type = 'radio';
  radio.name = 'reason';
  radio.value = code;
  const text = document.createElement('span');
  text.textContent = words;
  label.append(radio, text);
  return label;
}
