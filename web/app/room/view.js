// Draws the page: the current screen, the status line, the notice, the screens before and after the visit, and the toolbar. The
// stage, the panel and the dialogs have their own views. `render` may be called at any time: it writes only what changed.
import { box, button, byId, enable, iconURL, input, moveInto, setAttribute, setText, show, showActions } from '../shared/dom.js';
import { hasPip } from './pip.js';
import { handIsRaised, isHost, mayRecord, mayShare } from './room-state.js';
import { deviceHint, endingOf, maySeeRooms, mediaActions, noticeOf, screenOf, statusOf } from './words.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./strings.js').Strings} Strings */

const screens = /** @type {const} */ (['before', 'room', 'over']);
const layouts = /** @type {const} */ (['auto', 'grid', 'speaker']);

export class View {
  /** @type {import('./types.js').Reaction | object | null} the reaction last announced to screen readers */
  #reported = null;

  /** @param {Strings} strings @param {(event: Event) => void} dispatch */
  constructor(strings, dispatch) {
    this.strings = strings;
    this.dispatch = dispatch;
    const { room } = strings;
    /** @type {Record<import('./words.js').Action, string>} */
    this.actions = {
      retryLink: strings.tryAgain, takeOver: strings.useThisTab, reload: strings.reload, dismiss: strings.dismiss, again: room.joinAgain, back: room.close,
      otherRooms: room.otherRooms, openMedia: strings.tryAgain, openVoice: strings.useVoice, turnOn: strings.turnOn, unblock: strings.unblock,
      beRecorded: room.beRecorded, notRecorded: room.notRecorded, beBroadcast: room.beBroadcast, notBroadcast: room.notRecorded,
      devices: room.settingsTitle, check: strings.checkLink,
    };
  }

  /** @param {State} state */
  setUp(state) {
    const { dispatch } = this;
    const name = input('name');
    name.value = state.kept.name;
    name.addEventListener('input', () => dispatch({ type: 'name', name: name.value }));
    const password = input('password');
    password.addEventListener('input', () => dispatch({ type: 'password', password: password.value }));
    byId('form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      dispatch({ type: 'join' });
    });
    this.#makePopups();
    // Repeat the labels in tooltips, because the labels are hidden if they do not fit.
    for (const element of box('room').querySelectorAll('.bar .button:has(.word)')) element.setAttribute('title', element.textContent?.trim() ?? '');
    document.addEventListener('click', ({ target }) => this.#closePopup(target));
  }

  #makePopups() {
    const { room } = this.strings;
    box('popup-react').append(...room.reactions.map(([reaction, what]) => {
      const element = this.#popupButton(reaction, { type: 'react', reaction });
      element.className = 'button reaction';
      element.setAttribute('aria-label', room.reactWith(what));
      return element;
    }));
    box('popup-layout').append(...layouts.map((is) => {
      const element = this.#popupButton(room.layouts[is], { type: 'layout', is });
      element.dataset.layout = is;
      return element;
    }));
  }

  /** @param {string} text @param {Event} event */
  #popupButton(text, event) {
    const element = document.createElement('button');
    element.type = 'button';
    element.className = 'button';
    element.textContent = text;
    element.addEventListener('click', () => this.dispatch(event));
    return element;
  }

  /**
   * Closes the popup on a click outside it.
   * @param {EventTarget | null} target
   */
  #closePopup(target) {
    const open = document.body.dataset.popup;
    if (!open || !(target instanceof Element)) return;
    if (target.closest('.popup, .sheet, #react, #layout, #more')) return;
    this.dispatch({ type: 'popup', is: open });
  }

  /** @param {State} state */
  render(state) {
    const screen = screenOf(state);
    if (document.body.dataset.screen !== screen) this.#turnTo(screen);
    this.#renderTop(state);
    this.#renderToggles(state);
    if (screen === 'before') this.#renderBefore(state);
    this.#renderDevices(state);
    if (screen === 'over') this.#renderOver(state);
    this.#renderBar(state);
  }

  /** @param {'before' | 'room' | 'over'} screen */
  #turnTo(screen) {
    document.body.dataset.screen = screen;
    for (const id of screens) show(box(id), id === screen);
    moveInto(box('you'), box(screen === 'room' ? 'self-slot' : 'preview-slot'));
    // In the room, the device pickers are in the settings.
    moveInto(box('preview-tools'), screen === 'room' ? box('settings-devices') : /** @type {HTMLElement} */ (box('before').querySelector('.preview')));
    if (screen === 'room') box('bar-toggles').append(box('toggles'));
    else moveInto(box('toggles'), box('preview-toggles'));
    window.scrollTo(0, 0);
  }

  /** @param {State} state */
  #renderTop(state) {
    const { strings } = this;
    const status = statusOf(state, strings);
    setText(box('status'), status.text);
    setAttribute(box('status'), 'data-tone', status.tone);
    const name = state.room?.name ?? state.address;
    setText(box('room-name'), state.room ? name : '');
    // Repeat the name in a tooltip, because it may be cut off.
    setAttribute(box('room-name'), 'title', state.room ? name : null);
    const notice = noticeOf(state, strings);
    setText(box('notice-text'), notice?.text ?? '');
    setAttribute(box('notice'), 'data-tone', notice?.tone ?? null);
    showActions(box('notice-actions'), notice?.actions ?? [], this.actions);
    show(box('notice'), notice !== null);
    const title = state.knocks.length ? strings.room.titleWaiting(state.knocks.length, name) : strings.room.title(name);
    if (document.title !== title) document.title = title;
    const { reported } = state;
    if (reported === this.#reported) return;
    this.#reported = reported;
    const what = strings.room.reactions.find(([reaction]) => reaction === reported?.reaction)?.[1] ?? reported?.reaction ?? '';
    setText(box('reactions-status'), reported ? strings.room.reactedWith(reported.name, what) : '');
  }

  /** @param {State} state */
  #renderBefore(state) {
    const { strings } = this;
    const isWaiting = state.place.is === 'waiting';
    const isJoining = state.place.is === 'joining';
    setText(box('headline'), strings.room.headline(state.address));
    show(box('guest-note'), state.guest);
    show(box('mesh-note'), state.mesh);
    show(box('form'), !isWaiting);
    show(box('waiting'), isWaiting);
    show(box('name-field'), !state.isNamed);
    show(box('token-note'), state.isNamed);
    show(box('other-rooms'), maySeeRooms(state));
    show(box('password-field'), state.asksPassword);
    const password = input('password');
    if (state.password === '' && password.value !== '') password.value = '';
    setText(button('join'), isJoining ? strings.room.joining : strings.room.join);
    setAttribute(button('join'), 'aria-busy', isJoining ? 'true' : null);
    enable(button('join'), !isJoining && state.link.is !== 'closed');
    show(button('join-cancel'), isJoining);
    this.#renderPreview(state);
  }

  /** @param {State} state */
  #renderPreview(state) {
    const { media, cameraOff, link } = state;
    const { strings } = this;
    /** @type {[string, string, string[]]} the icon, the text and the actions to offer */
    let cover = ['camera', strings.room.previewOff, link.is === 'closed' ? [] : ['turnOn']];
    if (media.is === 'asking') cover = ['camera', strings.previewAsking, []];
    else if (media.is === 'failed') cover = ['camera-off', strings.room.media[media.why], mediaActions(media.why)];
    else if (media.is === 'on' && !media.camera) cover = ['microphone', strings.previewVoice, []];
    else if (media.is === 'on' && cameraOff) cover = ['camera-off', strings.room.previewCameraOff, []];
    const [picture, words, actions] = cover;
    setAttribute(box('preview-tile'), 'data-is', media.is);
    show(box('preview-cover'), media.is !== 'on' || !media.camera || cameraOff);
    setAttribute(byId('preview-icon', SVGUseElement), 'href', iconURL(picture));
    setText(box('preview-text'), words);
    showActions(box('preview-actions'), actions, this.actions);
  }

  /** @param {State} state */
  #renderDevices(state) {
    const { media, place } = state;
    const isOn = media.is === 'on';
    show(box('preview-tools'), isOn || place.is !== 'in');
    for (const id of ['level-box', 'microphone-picker']) show(box(id), isOn);
    show(box('camera-picker'), isOn && (media.camera || media.lost === 'video'));
    setText(box('device-hint'), deviceHint(state, this.strings));
  }

  /** @param {State} state */
  #renderOver(state) {
    const ending = endingOf(state, this.strings);
    setText(box('over-title'), ending?.title ?? '');
    setText(box('over-text'), ending?.text ?? '');
    showActions(box('over-actions'), ending?.actions ?? [], this.actions);
  }

  /** @param {State} state */
  #renderToggles({ media, muted, cameraOff, place }) {
    const isOn = media.is === 'on';
    const isInside = place.is === 'in';
    // Before joining, the preview offers to turn on the camera. In the room, these buttons do.
    show(box('toggles'), isOn || isInside);
    show(button('camera-off'), isInside || (isOn && media.camera));
    setAttribute(button('mute'), 'aria-pressed', String(muted || !isOn || media.lost === 'audio'));
    setAttribute(button('camera-off'), 'aria-pressed', String(cameraOff || !isOn || !media.camera));
    setAttribute(box('you'), 'data-off', cameraOff || !isOn || !media.camera ? 'yes' : null);
  }

  /** @param {State} state */
  #renderBar(state) {
    const { popup, panel, sharing, room } = state;
    const before = document.body.dataset.popup;
    setAttribute(document.body, 'data-popup', popup);
    if (!room) return;
    setAttribute(button('share'), 'aria-pressed', String(sharing === 'on'));
    setAttribute(button('share'), 'aria-disabled', mayShare(state) ? null : 'true');
    setAttribute(button('share'), 'title', mayShare(state) ? this.strings.room.shareScreen : this.strings.room.troubles.share_hosts);
    show(button('share'), typeof navigator.mediaDevices?.getDisplayMedia === 'function');
    setAttribute(button('hand'), 'aria-pressed', String(handIsRaised(state)));
    for (const name of /** @type {const} */ (['react', 'layout'])) {
      setAttribute(button(name), 'aria-expanded', String(popup === name));
      show(box(`popup-${name}`), popup === name);
    }
    setAttribute(button('more'), 'aria-expanded', String(popup === 'more'));
    for (const element of box('popup-layout').querySelectorAll('button')) {
      setAttribute(element, 'aria-pressed', String(element.dataset.layout === state.kept.layout && state.pinned === null));
    }
    setAttribute(button('chat'), 'aria-expanded', String(panel === 'chat'));
    setAttribute(button('people-button'), 'aria-expanded', String(panel === 'people'));
    this.#renderCount(box('unread'), button('chat'), state.unread, this.strings.room.unreadCount);
    this.#renderCount(box('waiting-count'), button('people-button'), state.knocks.length, this.strings.room.waitingCount);
    this.#renderRecord(state);
    show(button('more-options'), isHost(state));
    show(button('pip'), hasPip());
    if (before && before !== popup) this.#keepFocus(before, popup);
  }

  /** @param {State} state */
  #renderRecord(state) {
    const { room } = this.strings;
    show(button('record'), mayRecord(state));
    setText(box('record-word'), state.recording ? room.stopRecording : room.record);
    setAttribute(byId('record-icon', SVGUseElement), 'href', iconURL(state.recording ? 'stop' : 'record'));
    setAttribute(button('record'), 'aria-disabled', state.recordingAsked ? 'true' : null);
    setAttribute(button('record'), 'title', state.recording ? room.stopRecordingHint : room.recordHint);
  }

  /**
   * Keeps the focus when a popup closes: moves it to the popup that replaces it, otherwise to the button that opened
   * the closed one.
   * @param {string} before the popup that closed
   * @param {State['popup']} popup the popup that is open now, or null
   */
  #keepFocus(before, popup) {
    if (isRendered(document.activeElement)) return;
    const opened = popup ? [...box(`popup-${popup}`).querySelectorAll('button')] : [];
    // On a phone, the buttons of the other popups are inside the More popup. While it is closed, focus the More
    // button.
    const next = [...opened, button(before), button('more')].find(isRendered);
    next?.focus({ preventScroll: true });
  }

  /** @param {HTMLElement} badge @param {HTMLElement} owner @param {number} count @param {(count: number) => string} words */
  #renderCount(badge, owner, count, words) {
    show(badge, count > 0);
    setText(badge, count > 0 ? String(Math.min(99, count)) : '');
    const name = owner.querySelector('.word')?.textContent ?? '';
    setAttribute(owner, 'title', count > 0 ? `${name}: ${words(count)}` : name);
  }
}

/** @param {Element | null} element */
const isRendered = (element) => element !== null && element.getClientRects().length > 0;
