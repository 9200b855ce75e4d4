// Draws a state. `render` may be called at any time: it writes only what changed.
import { box, button, enable, iconURL, input, moveInto, setAttribute, setText, show, showActions, byId } from '../shared/dom.js';
import { keepingOf, keepWords } from '../shared/keep.js';
import { mediaActions, noticeOf, secondsUntil, startReason, statusOf } from './status.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('../shared/strings.js').Strings} Strings */

export class View {
  /** @param {Strings} strings */
  constructor(strings) {
    this.strings = strings;
    /** @type {Record<import('./status.js').Action | 'turnOn', string>} */
    this.actions = {
      retryLink: strings.tryAgain, takeOver: strings.useThisTab, reload: strings.reload, start: strings.tryAgain, openMedia: strings.tryAgain,
      openVoice: strings.useVoice, useText: strings.useText, report: strings.report, dismiss: strings.dismiss,
      unblock: strings.unblock, check: strings.checkLink,
      turnOn: strings.turnOn,
    };
  }

  /** @param {State} state @param {number} now */
  render(state, now) {
    const chatting = state.chat.is === 'waiting' || state.chat.is === 'matched';
    const screen = chatting ? 'chat' : 'setup';
    if (document.body.dataset.screen !== screen) this.#turnTo(screen);
    this.#renderTop(state, now);
    if (chatting) this.#renderChat(state, now);
    else this.#renderSetup(state);
    this.#renderToggles(state);
  }

  /** @param {'setup' | 'chat'} screen */
  #turnTo(screen) {
    document.body.dataset.screen = screen;
    show(box('setup'), screen === 'setup');
    show(box('chat'), screen === 'chat');
    moveInto(box('you'), box(screen === 'setup' ? 'preview-slot' : 'chat-slot'));
    moveInto(box('toggles'), box(screen === 'setup' ? 'preview-toggles' : 'chat-toggles'));
    window.scrollTo(0, 0);
  }

  /** @param {State} state @param {number} now */
  #renderTop(state, now) {
    const status = statusOf(state, this.strings, now);
    setText(box('status'), status.text);
    setAttribute(box('status'), 'data-tone', status.tone);
    const { people } = state;
    // Hide the number of people during a chat.
    setText(box('people'), people && state.link.is === 'online' && state.chat.is !== 'matched' ? this.strings.people(people.online) : '');
    const notice = noticeOf(state, this.strings, now);
    setText(box('notice-text'), notice?.text ?? '');
    setAttribute(box('notice'), 'data-tone', notice?.tone ?? null);
    showActions(box('notice-actions'), notice?.actions ?? [], this.actions);
    show(box('notice'), notice !== null);
    const title = state.chat.is === 'waiting' || state.chat.is === 'matched' ? this.strings.titles[state.chat.is] : this.strings.title;
    if (document.title !== title) document.title = title;
  }

  /** @param {State} state */
  #renderSetup(state) {
    const { form, media } = state;
    input('mode-video').checked = form.mode === 'video';
    input('mode-text').checked = form.mode === 'text';
    setAttribute(box('setup'), 'data-mode', form.mode);
    show(box('guest-note'), state.guest);
    show(box('address-note'), state.hidesAddress === false && form.mode === 'video');
    show(box('sampling-note'), state.samplesEvery !== null);
    setText(box('sampling-words'), state.samplesEvery === null ? '' : this.strings.samplingRule(state.samplesEvery));
    // The rules can change while the page is open. Then a note says no longer that the user has agreed.
    if (!form.agreed && !box('agreed-before').hidden) {
      input('agree').checked = false;
      show(box('agree-label'), true);
      show(box('agreed-before'), false);
    }
    const reason = startReason(state, this.strings);
    const preparing = state.chat.is === 'preparing';
    enable(button('start'), reason === null);
    setAttribute(button('start'), 'aria-busy', preparing ? 'true' : null);
    setText(box('start-reason'), reason ?? (preparing ? this.strings.starting : ''));
    // Link to the checkbox, which may be scrolled out of view on a phone.
    setAttribute(box('start-reason'), 'href', form.agreed || reason === null ? null : '#agree');
    this.#renderPreview(state);
    show(box('preview-tools'), media.is === 'on');
  }

  /** @param {State} state */
  #renderPreview({ form, media, cameraOff, link }) {
    const { strings } = this;
    /** @type {[string, string, string[]]} the icon, the text and the actions to offer */
    let cover = ['camera', strings.previewOff, link.is === 'closed' ? [] : ['turnOn']];
    if (form.mode === 'text') cover = ['bubble', strings.previewText, []];
    else if (media.is === 'asking') cover = ['camera', strings.previewAsking, []];
    else if (media.is === 'failed') cover = ['camera-off', strings.media[media.why], mediaActions(media.why)];
    else if (media.is === 'on' && !media.camera) cover = ['microphone', strings.previewVoice, []];
    else if (media.is === 'on' && cameraOff) cover = ['camera-off', strings.previewCameraOff, []];
    const [picture, words, actions] = cover;
    setAttribute(box('preview-tile'), 'data-is', media.is);
    show(box('preview-cover'), media.is !== 'on' || !media.camera || cameraOff);
    setAttribute(byId('preview-icon', SVGUseElement), 'href', iconURL(picture));
    setText(box('preview-text'), words);
    showActions(box('preview-actions'), actions, this.actions);
  }

  /** @param {State} state @param {number} now */
  #renderChat(state, now) {
    const { chat, form } = state;
    const matched = chat.is === 'matched' ? chat : null;
    setAttribute(box('chat'), 'data-mode', matched?.mode ?? form.mode);
    setAttribute(box('chat'), 'data-is', chat.is);
    setAttribute(box('chat'), 'data-lines', state.lines.length ? 'some' : 'none');
    setAttribute(box('stage'), 'data-away', matched?.away ? 'yes' : null);
    setAttribute(box('stage'), 'data-blurred', matched?.blurred.partner ? 'yes' : null);
    setText(box('blur-words'), matched?.blurred.partner ? this.strings.partnerBlurred : '');
    this.#renderAbout(state);
    this.#renderPlaceholder(state, now);
    // Next does nothing while waiting. Do not use `disabled`, because a keyboard user would lose the focus.
    setAttribute(button('next'), 'aria-disabled', matched ? null : 'true');
  }

  /** @param {State} state */
  #renderAbout({ chat, last, question, keeping: all }) {
    const { strings } = this;
    const matched = chat.is === 'matched' ? chat : null;
    const someone = matched ?? last;
    setText(box('partner-name'), someone ? someone.name || strings.nameless : strings.nobody);
    setText(box('initial'), someone ? [...(someone.name || '?')][0].toUpperCase() : '');
    const shared = matched && matched.interests.length ? strings.inCommon(matched.interests) : '';
    setText(box('shared'), matched || !last ? shared : strings.gone);
    const keeping = keepingOf(all, someone?.matchId);
    const words = keepWords(keeping);
    enable(button('keep'), someone !== null);
    show(button('keep'), !keeping.agreed);
    setAttribute(button('keep'), 'aria-pressed', String(keeping.mine));
    setAttribute(box('keep-words'), 'data-is', words);
    setText(box('keep-words'), someone ? strings[words](someone.name) : '');
    // The line below has room only for a status, so the tooltip says what the button does.
    setAttribute(button('keep'), 'title', someone && words === 'keepPromise' ? strings[words](someone.name) : null);
    show(box('keep-link'), someone !== null && keeping.agreed);
    enable(button('report'), someone !== null);
    enable(button('block'), someone !== null);
    const asking = question?.is === 'block';
    const group = box('block-question');
    const changed = group.hidden === asking;
    show(group, asking);
    show(box('about-buttons'), !asking);
    if (asking) setText(box('block-words'), strings.blockQuestion(question.name));
    // The pressed button is hidden now: move focus to the one that replaces it.
    if (changed && asking) button('block-yes').focus();
    if (changed && !asking && document.activeElement === document.body) box('chat').focus({ preventScroll: true });
  }

  /** @param {State} state @param {number} now */
  #renderPlaceholder({ chat, form, guest, people }, now) {
    const { strings } = this;
    const waiting = chat.is === 'waiting' ? chat : null;
    const pictureless = chat.is === 'matched' && chat.mode === 'video' && (chat.stream === 'pending' || chat.stream === 'missing');
    show(box('placeholder'), waiting !== null || pictureless);
    setAttribute(box('placeholder'), 'data-is', waiting ? 'waiting' : 'found');
    const paused = waiting?.pause && waiting.pause.until > now ? waiting.pause : null;
    show(box('countdown'), paused !== null);
    if (paused) setText(box('countdown'), String(secondsUntil(paused.until, now)));
    setAttribute(box('placeholder'), 'data-paused', paused ? 'yes' : null);
    let words = '';
    if (chat.is === 'matched') words = chat.stream === 'missing' ? strings.noPicture : strings.pictureComing;
    else if (!paused) words = form.interests.length ? strings.lookingFor(form.interests) : strings.lookingForAnybody;
    setText(box('placeholder-text'), words);
    // With other people online the wait is short, so hide the hint.
    show(box('alone'), waiting !== null && waiting.after === null && !paused && !guest && (people === null || people.online <= 1));
  }

  /** @param {State} state */
  #renderToggles({ media, muted, cameraOff, chat }) {
    const mode = chat.is === 'matched' ? chat.mode : null;
    show(box('toggles'), media.is === 'on' && mode !== 'text');
    show(button('camera-off'), media.is === 'on' && media.camera);
    setAttribute(button('mute'), 'aria-pressed', String(muted));
    setAttribute(button('camera-off'), 'aria-pressed', String(cameraOff));
    setAttribute(box('you'), 'data-off', cameraOff || (media.is === 'on' && !media.camera) ? 'yes' : null);
    setAttribute(box('you'), 'data-muted', muted ? 'yes' : null);
    show(box('chat-slot'), media.is === 'on');
  }
}
