// The network indicator: three bars on each tile. Pressing it shows a sentence with the cause, and what to do.
import { setAttribute, setText } from './dom.js';
import { explain } from './connection-words.js';

/** @typedef {import('../../lib/media/condition.js').Condition} Condition */

/** Space between the button and the sentence, and between the sentence and the window's edge, in CSS pixels. */
const gap = 8;

/**
 * The sentence that explains a network condition. At most one is open. Its element is outside the tiles, because a
 * tile would crop it.
 */
class Bubble {
  /** @type {HTMLElement | null} */
  #element = null;
  /** @type {HTMLButtonElement | null} */
  button = null;

  /** @param {HTMLButtonElement} button @param {string} text */
  show(button, text) {
    this.close();
    const element = this.#element ??= this.#make();
    this.button = button;
    button.setAttribute('aria-expanded', 'true');
    button.setAttribute('aria-describedby', element.id);
    element.hidden = false;
    this.write(text);
  }

  /** @param {string} text */
  write(text) {
    const { button } = this;
    const element = this.#element;
    if (!button || !element) return;
    setText(element, text);
    const anchor = button.getBoundingClientRect();
    const { width, height } = element.getBoundingClientRect();
    const left = Math.min(Math.max(gap, anchor.left), innerWidth - width - gap);
    const below = anchor.bottom + gap;
    const top = below + height <= innerHeight - gap ? below : Math.max(gap, anchor.top - gap - height);
    Object.assign(element.style, { left: `${left}px`, top: `${top}px` });
  }

  close() {
    const { button } = this;
    this.button = null;
    button?.setAttribute('aria-expanded', 'false');
    button?.removeAttribute('aria-describedby');
    if (this.#element) {
      this.#element.hidden = true;
      setText(this.#element, '');
    }
  }

  #make() {
    const element = document.createElement('p');
    Object.assign(element, { className: 'network-why', id: 'network-why' });
    element.setAttribute('aria-live', 'polite');
    document.body.append(element);
    const away = (/** @type {Event} */ { target }) => {
      if (this.button && target instanceof Node && !this.button.contains(target) && !element.contains(target)) this.close();
    };
    document.addEventListener('pointerdown', away);
    document.addEventListener('focusin', away);
    window.addEventListener('blur', () => this.close());
    window.addEventListener('resize', () => this.write(element.textContent ?? ''));
    document.addEventListener('scroll', ({ target }) => {
      if (target instanceof Node && target.contains(this.button)) this.close();
    }, { capture: true, passive: true });
    // Handle Escape before the page does, so that Escape closes only the sentence.
    window.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.button) return;
      event.preventDefault();
      this.close();
    }, { capture: true });
    return element;
  }
}

const bubble = new Bubble();

/**
 * Shows a network indicator on a tile: for a subscriber, from when it is connected until it is destroyed; for a
 * publisher, while it is published.
 * @param {HTMLElement} tile
 * @param {any} source the SDK's subscriber or publisher
 * @param {'mine' | 'theirs'} whose
 * @param {import('./strings.js').Strings} strings
 * @param {() => string} [nameOf] returns the person's name; default: the stream's name
 */
export function showCondition(tile, source, whose, { network }, nameOf = () => source.stream?.name) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'network';
  button.setAttribute('aria-expanded', 'false');
  button.append(...[1, 2, 3].map(() => document.createElement('i')));
  const said = () => explain(source.networkCondition, { whose, name: nameOf() }, network);
  const isOpen = () => bubble.button === button;
  const draw = () => {
    const { name, why } = said();
    setAttribute(button, 'data-level', source.networkCondition.networkCondition);
    setAttribute(button, 'aria-label', name);
    setAttribute(button, 'title', name);
    if (isOpen()) bubble.write(why);
  };
  const appear = () => {
    draw();
    tile.append(button);
  };
  const leave = () => {
    if (isOpen()) bubble.close();
    button.remove();
  };
  button.addEventListener('click', (event) => {
    // Stop the click here, because the tile may react to clicks too.
    event.stopPropagation();
    if (isOpen()) bubble.close();
    else bubble.show(button, said().why);
  });
  source.on({ networkConditionChanged: draw, destroyed: leave });
  if (whose === 'mine') source.on({ streamCreated: appear, streamDestroyed: leave });
  else source.on('connected', appear);
}
