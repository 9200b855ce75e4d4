// One tile: a video or an initial, the person's name and status, and the tile's buttons.
import { icon, initialOf, setAttribute, setText, show } from '../shared/dom.js';

/** @typedef {import('./tiles.js').Tile} Tile */
/** @typedef {{x: number, y: number, width: number, height: number, fit: 'contain' | 'cover'}} Rectangle */

/** Two taps within this time (milliseconds) and distance (pixels) are a double tap. */
const tapTime = 350;
const tapDistance = 24;

/** @param {string} tag @param {string} className @param {(Node | string)[]} children */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

export class TileView {
  name = '';
  #initial = make('span', 'initial');
  #slot = make('div', 'tile-slot');
  #label = make('span', 'tile-label');
  #note = make('span', 'tile-note');
  #reactions = make('div', 'tile-reactions');
  #muted = icon('microphone-off');
  #hand = icon('hand');
  #pin;
  #fill;
  /** @type {'contain' | 'cover'} */
  #fit = 'contain';
  /** @type {{at: number, x: number, y: number} | null} */
  #tap = null;

  /** @param {string} id @param {import('./strings.js').Strings} strings @param {(event: import('./types.js').Event) => void} dispatch */
  constructor(id, strings, dispatch) {
    this.id = id;
    this.words = strings.room;
    this.dispatch = dispatch;
    this.#muted.classList.add('tile-muted');
    this.#hand.classList.add('tile-hand');
    this.#pin = this.#tool('pin', () => dispatch({ type: 'pin', id }));
    this.#fill = this.#tool('fit', () => this.#toggleFit());
    const figure = make('div', 'tile-figure', this.#initial);
    figure.setAttribute('aria-hidden', 'true');
    this.#reactions.setAttribute('aria-hidden', 'true');
    const caption = make('p', 'tile-name', this.#hand, this.#muted, this.#label, this.#note);
    this.element = make('div', 'person-tile', figure, this.#slot, this.#reactions, caption, make('div', 'tile-tools', this.#pin, this.#fill));
    this.element.setAttribute('role', 'group');
    this.element.dataset.id = id;
    this.element.tabIndex = -1;
    // A double tap or double click toggles the fit. A single tap focuses the tile, which shows the tools.
    this.element.addEventListener('pointerup', (event) => this.#tapped(event));
  }

  /** @returns {HTMLVideoElement | null} */
  get video() {
    return this.#slot.querySelector('video');
  }

  /** @param {string} picture @param {() => void} press */
  #tool(picture, press) {
    const element = /** @type {HTMLButtonElement} */ (make('button', 'tile-tool', icon(picture)));
    element.type = 'button';
    element.addEventListener('click', press);
    return element;
  }

  #toggleFit() {
    this.dispatch({ type: 'fit', id: this.id, is: this.#fit === 'cover' ? 'contain' : 'cover' });
  }

  /** @param {PointerEvent} event */
  #tapped({ button, clientX: x, clientY: y, timeStamp: at, target }) {
    if (button !== 0 || (target instanceof Element && target.closest('button'))) return;
    const last = this.#tap;
    const isDouble = last !== null && at - last.at < tapTime && Math.hypot(x - last.x, y - last.y) < tapDistance;
    this.#tap = isDouble ? null : { at, x, y };
    if (isDouble) this.#toggleFit();
  }

  /** @param {Tile} tile @param {Rectangle | null} rectangle null while the tile is on another page @param {'contain' | 'cover' | undefined} chosen */
  render(tile, rectangle, chosen) {
    const { element, words } = this;
    this.name = tile.name;
    show(element, rectangle !== null);
    if (rectangle) this.#place(rectangle);
    this.#fit = chosen ?? rectangle?.fit ?? 'contain';
    setAttribute(element, 'data-fit', this.#fit);
    const label = tile.isScreen ? words.tileOf(tile.name) : tile.name;
    setAttribute(element, 'aria-label', label);
    setText(this.#label, label);
    setText(this.#initial, initialOf(tile.name));
    const notes = [tile.isHost ? words.isHost : '', tile.isAway ? words.isAway : '', tile.isUnseen ? words.isUnseen : '', tile.isMuted ? words.isMuted : '', tile.hand ? words.handUp : ''];
    setText(this.#note, notes.filter(Boolean).map((note) => ` ${note}.`).join(''));
    setAttribute(element, 'data-muted', tile.isMuted && !tile.isScreen ? 'yes' : null);
    setAttribute(element, 'data-hand', tile.hand ? 'yes' : null);
    setAttribute(element, 'data-away', tile.isAway ? words.isAway : tile.isUnseen ? words.isUnseen : null);
    setAttribute(element, 'data-speaking', tile.isSpeaking ? 'yes' : null);
    setAttribute(element, 'data-video', tile.hasVideo ? 'yes' : null);
    setText(this.#reactions, tile.reactions.join(''));
    this.#nameTool(this.#pin, words.pin(label), tile.isPinned);
    this.#nameTool(this.#fill, words.fill(label), this.#fit === 'cover');
  }

  /** @param {HTMLButtonElement} tool @param {string} name @param {boolean} isOn */
  #nameTool(tool, name, isOn) {
    setAttribute(tool, 'aria-label', name);
    setAttribute(tool, 'title', name);
    setAttribute(tool, 'aria-pressed', String(isOn));
  }

  /** @param {Rectangle} rectangle */
  #place({ x, y, width, height }) {
    const { style } = this.element;
    const wanted = { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
    for (const [name, value] of Object.entries(wanted)) if (style.getPropertyValue(name) !== value) style.setProperty(name, value);
    setAttribute(this.element, 'data-size', Math.min(width, height) < 110 ? 'small' : null);
  }

  /**
   * Moves the name out from under the self-view.
   * @param {{left: number, right: number}} covered pixels of the lower edge that the self-view covers
   */
  keepNameFree(covered) {
    for (const [side, pixels] of Object.entries(covered)) this.element.style.setProperty(`--covered-${side}`, `${pixels}px`);
  }

  /**
   * Shows the subscriber's element in this tile. Null removes the element that the tile shows.
   * @param {HTMLElement | null} element
   * @param {string} name
   */
  show(element, name) {
    if (element && element.parentElement !== this.#slot) this.#slot.replaceChildren(element);
    else if (!element && this.#slot.firstChild) this.#slot.replaceChildren();
    const { video } = this;
    if (!video) return;
    setAttribute(video, 'aria-label', name);
    if (video.style.objectFit !== this.#fit) video.style.objectFit = this.#fit;
  }
}
