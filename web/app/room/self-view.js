// The self-view in a corner: a click, Enter or the space bar mutes or unmutes, and dragging or the arrow keys move it
// to another corner.
import { box, initialOf, setAttribute, setText, show } from '../shared/dom.js';
import { handIsRaised } from './room-state.js';
import { reactionsOf } from './tiles.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Corner} Corner */

/** A pointer that moves less than this (pixels) counts as a click, not as a drag. */
const clickDistance = 8;

/** @type {Record<string, (corner: Corner) => Corner>} */
const moves = {
  ArrowLeft: (corner) => /** @type {Corner} */ (corner.replace('Right', 'Left')),
  ArrowRight: (corner) => /** @type {Corner} */ (corner.replace('Left', 'Right')),
  ArrowUp: (corner) => /** @type {Corner} */ (corner.replace('bottom', 'top')),
  ArrowDown: (corner) => /** @type {Corner} */ (corner.replace('top', 'bottom')),
};

export class SelfView {
  #element = box('self');
  /** @type {{id: number, x: number, y: number, isDrag: boolean} | null} */
  #pointer = null;
  /** @type {Corner} */
  #corner = 'bottomRight';
  /** @type {number | null} */
  #aspect = null;

  /** @param {import('./strings.js').Strings} strings @param {(event: import('./types.js').Event) => void} dispatch @param {() => void} resized */
  constructor(strings, dispatch, resized) {
    this.strings = strings;
    this.dispatch = dispatch;
    this.resized = resized;
    const element = this.#element;
    element.addEventListener('keydown', (event) => this.#pressed(event));
    element.addEventListener('pointerdown', (event) => this.#down(event));
    element.addEventListener('pointermove', (event) => this.#moved(event));
    element.addEventListener('pointerup', (event) => this.#up(event));
    element.addEventListener('pointercancel', () => this.#drop());
    // Listen in the capture phase, because the events that report a video's size do not bubble.
    box('you').addEventListener('resize', () => this.#measure(), { capture: true });
  }

  /** The width of the camera's video divided by its height; null until the camera has been on. */
  get aspect() {
    return this.#aspect;
  }

  #measure() {
    const video = box('you').querySelector('video');
    const { videoWidth = 0, videoHeight = 0 } = video ?? {};
    if (!videoWidth || !videoHeight || videoWidth / videoHeight === this.#aspect) return;
    this.#aspect = videoWidth / videoHeight;
    this.resized();
  }

  /** @param {State} state */
  render(state) {
    const { media, muted, cameraOff, room, kept } = state;
    const me = room?.people.find(({ connectionId }) => connectionId === room.me);
    this.#corner = kept.corner;
    const hasVideo = media.is === 'on' && media.camera && !cameraOff;
    setAttribute(this.#element, 'data-off', hasVideo ? null : 'yes');
    setAttribute(this.#element, 'data-muted', muted || media.is !== 'on' ? 'yes' : null);
    setAttribute(this.#element, 'data-hand', handIsRaised(state) ? 'yes' : null);
    setText(box('self-initial'), initialOf(me?.displayName ?? kept.name));
    setText(box('self-reactions'), room ? reactionsOf(state, room.me).join('') : '');
  }

  /**
   * @param {import('./tiles.js').Rectangle | null | undefined} rectangle
   * @param {{isAlone: boolean, isApart: boolean}} how `isAlone`: there are no tiles; `isApart`: it overlaps no tile
   */
  place(rectangle, { isAlone, isApart }) {
    show(this.#element, Boolean(rectangle));
    setAttribute(this.#element, 'data-alone', isAlone ? 'yes' : null);
    setAttribute(this.#element, 'data-apart', isApart ? 'yes' : null);
    if (!rectangle || this.#pointer?.isDrag) return;
    const { style } = this.#element;
    for (const [name, value] of Object.entries({ left: rectangle.x, top: rectangle.y, width: rectangle.width, height: rectangle.height })) {
      style.setProperty(name, `${value}px`);
    }
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.target !== this.#element || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      return this.#mute();
    }
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    this.dispatch({ type: 'corner', corner: move(this.#corner) });
  }

  #mute() {
    this.dispatch({ type: 'mute' });
    this.#element.classList.remove('pop');
    // Reading the width forces a layout, which restarts the animation.
    void this.#element.offsetWidth;
    this.#element.classList.add('pop');
  }

  /** @param {PointerEvent} event */
  #down({ button, pointerId, clientX, clientY, target }) {
    if (button !== 0 || (target instanceof Element && target.closest('button'))) return;
    this.#pointer = { id: pointerId, x: clientX, y: clientY, isDrag: false };
    this.#element.setPointerCapture(pointerId);
  }

  /** @param {PointerEvent} event */
  #moved({ pointerId, clientX, clientY }) {
    const pointer = this.#pointer;
    if (pointer?.id !== pointerId) return;
    const [x, y] = [clientX - pointer.x, clientY - pointer.y];
    pointer.isDrag ||= Math.hypot(x, y) > clickDistance;
    if (!pointer.isDrag) return;
    this.#element.dataset.dragged = 'yes';
    this.#element.style.transform = `translate(${x}px, ${y}px)`;
  }

  /** @param {PointerEvent} event */
  #up({ pointerId }) {
    const pointer = this.#pointer;
    if (pointer?.id !== pointerId) return;
    const own = this.#element.getBoundingClientRect();
    const stage = box('stage').getBoundingClientRect();
    this.#drop();
    if (!pointer.isDrag) return this.#mute();
    const isTop = own.top + own.height / 2 < stage.top + stage.height / 2;
    const isLeft = own.left + own.width / 2 < stage.left + stage.width / 2;
    this.dispatch({ type: 'corner', corner: /** @type {Corner} */ (`${isTop ? 'top' : 'bottom'}${isLeft ? 'Left' : 'Right'}`) });
  }

  #drop() {
    this.#pointer = null;
    delete this.#element.dataset.dragged;
    this.#element.style.transform = '';
  }
}
