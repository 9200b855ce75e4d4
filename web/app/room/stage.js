// The stage: one tile for each person and each shared screen, positioned by the layout, and the self-view. Text from other people
// is written only with `textContent`.
import { layOut } from '../../lib/rooms/layout.js';
import { showCondition } from '../shared/connection.js';
import { box, button, setAttribute, setText, show } from '../shared/dom.js';
import { SelfView } from './self-view.js';
import { TileView } from './tile-view.js';
import { arrangement, coveredEdge, tilesOf } from './tiles.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./tiles.js').Tile} Tile */

/** Space between tiles, in CSS pixels. */
const gap = 8;
/** Height reserved below the tiles for the paging buttons, in CSS pixels. `room.css` has the same height. */
const pagerHeight = 56;

export class Stage {
  #stage = box('stage');
  #tiles = box('tiles');
  /** @type {Map<string, TileView>} */
  #shown = new Map();
  #self;
  /** @type {State | null} */
  #state = null;
  /** @type {string | null} the `focus` of the arrangement, a tile id; null if there are no tiles */
  #focus = null;
  /** @type {string | undefined} the connectionId of the person on the knock card when the current press began */
  #pressed = undefined;
  /** Subscribers that already have a network indicator. */
  #indicated = new WeakSet();

  /**
   * @param {import('./strings.js').Strings} strings
   * @param {(event: Event) => void} dispatch
   * @param {(streamId: string | null) => import('../../lib/session/subscriber.js').Subscriber | null} subscriberOf
   * @param {() => string} link returns the invitation link
   * @param {(video: HTMLVideoElement) => void} shown called on every render, for each tile's video
   */
  constructor(strings, dispatch, subscriberOf, link, shown) {
    this.strings = strings;
    this.dispatch = dispatch;
    this.subscriberOf = subscriberOf;
    this.link = link;
    this.shown = shown;
    this.#self = new SelfView(strings, dispatch, () => { if (this.#state) this.render(this.#state); });
    new ResizeObserver(() => { if (this.#state) this.render(this.#state); }).observe(this.#stage);
    button('page-back').addEventListener('click', () => this.#turn(-1));
    button('page-on').addEventListener('click', () => this.#turn(1));
    // Remember who is on the card when a press begins: when it ends, the card may already show someone else.
    const card = box('knock');
    card.addEventListener('pointerdown', () => { this.#pressed = card.dataset.connection; });
    card.addEventListener('pointercancel', () => { this.#pressed = undefined; });
    // Ignore other keys: they do not press a button, so the person remembered here would be used for a later press.
    card.addEventListener('keydown', ({ key }) => { if (key === 'Enter' || key === ' ') this.#pressed = card.dataset.connection; });
    button('knock-admit').addEventListener('click', () => this.#answer('admit'));
    button('knock-deny').addEventListener('click', () => this.#answer('deny'));
  }

  /**
   * The video of the large tile; in a layout without one, of the newest shared screen, otherwise of the active
   * speaker, otherwise of the first tile. Null if that tile has no video, or if there are no tiles.
   * @returns {HTMLVideoElement | null}
   */
  get focusVideo() {
    const view = this.#focus === null ? undefined : this.#shown.get(this.#focus);
    return view?.video ?? null;
  }

  /** @returns {HTMLVideoElement[]} the videos of all tiles */
  get videos() {
    return [...this.#shown.values()].flatMap(({ video }) => video ?? []);
  }

  /** @param {State} state */
  render(state) {
    this.#state = state;
    const tiles = tilesOf(state);
    this.#remove(tiles, state.room !== null);
    if (!state.room) return;
    this.#self.render(state);
    const { layout: is, focus } = arrangement(state, tiles);
    this.#focus = focus ?? null;
    const placed = this.#place(state, tiles, is, focus);
    for (const tile of tiles) {
      const view = this.#viewOf(tile);
      const rectangle = placed.tiles.find(({ id }) => id === tile.id) ?? null;
      view.render(tile, rectangle, state.fits[tile.id]);
      if (rectangle) view.keepNameFree(coveredEdge(rectangle, placed.self));
      this.#attach(view, tile);
    }
    setAttribute(this.#stage, 'data-tiles', String(Math.min(tiles.length, 3)));
    this.#self.place(placed.self, { isAlone: tiles.length === 0, isApart: !placed.tiles.some((one) => placed.self && overlap(one, placed.self)) });
    this.#renderPager(state.page, placed.pages);
    this.#renderAlone(state, tiles);
    this.#renderKnock(state);
  }

  /** @param {State} state @param {Tile[]} tiles @param {'auto' | 'grid' | 'speaker' | 'pinned'} is @param {string | undefined} focus */
  #place(state, tiles, is, focus) {
    // The size is rounded up: tiles that end a fraction of a pixel before the stage would leave a dark line. The stage
    // clips what exceeds it.
    const { width, height } = this.#size();
    const room = {
      width, height, layout: is, focus, gap, page: state.page,
      tiles: tiles.map(({ id, aspect, isScreen }) => ({ id, aspect, isScreen })),
      self: { aspect: this.#self.aspect, corner: state.kept.corner },
    };
    const placed = layOut(room);
    // If there are several pages, leave room for the paging buttons, so that they do not cover a tile.
    return placed.pages > 1 ? layOut({ ...room, height: height - pagerHeight }) : placed;
  }

  #size() {
    const { width, height } = this.#stage.getBoundingClientRect();
    return { width: Math.ceil(width), height: Math.ceil(height) };
  }

  /**
   * Removes the tiles that are no longer in `tiles`, because a person left or a screen share ended.
   * @param {Tile[]} tiles
   * @param {boolean} isInside whether the user is in the room
   */
  #remove(tiles, isInside) {
    for (const [id, view] of this.#shown) {
      if (tiles.some((tile) => tile.id === id)) continue;
      const hadFocus = view.element.contains(document.activeElement);
      view.element.remove();
      this.#shown.delete(id);
      // Move the focus, which would be lost with the tile.
      if (hadFocus && isInside) box('room').focus({ preventScroll: true });
    }
  }

  /** @param {Tile} tile */
  #viewOf(tile) {
    const known = this.#shown.get(tile.id);
    if (known) return known;
    const view = new TileView(tile.id, this.strings, this.dispatch);
    this.#shown.set(tile.id, view);
    this.#tiles.append(view.element);
    return view;
  }

  /** @param {TileView} view @param {Tile} tile */
  #attach(view, tile) {
    const subscriber = this.subscriberOf(tile.streamId);
    view.show(subscriber?.element ?? null, tile.name);
    if (view.video) this.shown(view.video);
    if (!subscriber || this.#indicated.has(subscriber)) return;
    this.#indicated.add(subscriber);
    showCondition(view.element, subscriber, 'theirs', this.strings, () => view.name);
  }

  /** @param {number} by */
  #turn(by) {
    this.dispatch({ type: 'page', to: (this.#state?.page ?? 0) + by });
  }

  /** @param {number} page @param {number} pages */
  #renderPager(page, pages) {
    show(box('pager'), pages > 1);
    if (pages <= 1) return;
    const current = Math.min(page, pages - 1);
    if (current !== page) queueMicrotask(() => this.dispatch({ type: 'page', to: current }));
    setText(box('page-text'), this.strings.room.pages(current + 1, pages));
    setAttribute(button('page-back'), 'aria-disabled', current === 0 ? 'true' : null);
    setAttribute(button('page-on'), 'aria-disabled', current === pages - 1 ? 'true' : null);
  }

  /** @param {State} state @param {Tile[]} tiles */
  #renderAlone(state, tiles) {
    show(box('alone'), tiles.length === 0);
    showLink(box('alone-link'), this.link());
  }

  /**
   * Updates the knock card, which shows one person who is asking to come in. Hides the card if nobody is asking, or
   * while the People panel is open, because the panel lists all knocks.
   * @param {State} state
   */
  #renderKnock({ knocks, card: is, panel }) {
    const person = knocks.find(({ connectionId }) => connectionId === is?.connectionId);
    const card = box('knock');
    const isShown = person !== undefined && panel !== 'people';
    // Move the focus, which would be lost with the card.
    if (!isShown && card.contains(document.activeElement)) box('room').focus({ preventScroll: true });
    show(card, isShown);
    if (!isShown) return;
    card.dataset.connection = person.connectionId;
    for (const id of ['knock-admit', 'knock-deny']) setAttribute(button(id), 'aria-disabled', is?.isReady ? null : 'true');
    setText(box('knock-text'), this.strings.room.knocks(person.displayName));
    setText(box('knock-more'), knocks.length > 1 ? this.strings.room.knocksMore(knocks.length - 1) : '');
  }

  /** @param {'admit' | 'deny'} how */
  #answer(how) {
    this.dispatch({ type: 'answerCard', how, connectionId: this.#pressed ?? box('knock').dataset.connection });
    this.#pressed = undefined;
  }
}

/** @param {import('./tiles.js').Rectangle} one @param {import('./tiles.js').Rectangle} other */
const overlap = (one, other) => (
  one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height);

/**
 * Shows a link that can wrap after each slash.
 * @param {HTMLElement} element
 * @param {string} link
 */
function showLink(element, link) {
  if (element.textContent === link) return;
  const parts = link.split(/(?<=[/])(?![/]|$)/);
  element.replaceChildren(...parts.flatMap((part, index) => (index === 0 ? [part] : [document.createElement('wbr'), part])));
}
