// Draws the page `/nearby`: the screen, the status line and the first screen. The lists, the settings and a call have their own
// views. `render` may be called at any time: it writes only what changed.
import { box, button, byId, enable, input, setAttribute, setText, show, showActions } from '../shared/dom.js';
import { incomingCall } from './call-state.js';
import { CallView } from './call-view.js';
import { ListView } from './list-view.js';
import { SettingsView } from './settings-view.js';
import { afterwardsOf, noticeOf, screenOf, statusOf } from './words.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./strings.js').Strings} Strings */

export class View {
  /** @param {Strings} strings @param {(event: Event) => void} dispatch */
  constructor(strings, dispatch) {
    this.strings = strings;
    this.dispatch = dispatch;
    this.call = new CallView(strings, dispatch);
    this.list = new ListView(strings, dispatch);
    this.settings = new SettingsView(strings, dispatch);
    /** @type {Record<import('./words.js').Action, string>} */
    this.actions = {
      retryLink: strings.tryAgain, takeOver: strings.useThisTab, reload: strings.reload, dismiss: strings.dismiss, callVoice: strings.nearby.callVoice,
      callVideo: strings.tryAgain, callAgain: strings.nearby.callAgain, callBack: strings.nearby.callBack, keep: strings.keep,
      unblockSound: strings.unblock, check: strings.checkLink,
    };
    for (const tab of this.#tabs()) {
      tab.addEventListener('click', () => dispatch({ type: 'panel', is: tab.dataset.panel }));
    }
  }

  /** @param {import('./types.js').Form} form @param {import('./types.js').Remembered} kept */
  setUp(form, kept) {
    const { dispatch } = this;
    const name = input('name');
    name.value = form.name;
    name.addEventListener('input', () => dispatch({ type: 'form', change: { name: name.value.trim() } }));
    const position = input('want-position');
    position.checked = kept.position;
    position.addEventListener('change', () => dispatch({ type: 'keepPosition', on: position.checked }));
    const agree = input('agree');
    agree.checked = form.agreed;
    agree.addEventListener('change', () => dispatch({ type: 'form', change: { agreed: agree.checked } }));
    // If the user agreed in an earlier visit or on the roulette page, show a note instead of the checkbox.
    show(box('agree-label'), !form.agreed);
    show(box('agreed-before'), form.agreed);
    byId('rules-list', HTMLUListElement).append(...this.strings.rulesList.map((rule) => {
      const item = document.createElement('li');
      item.textContent = rule;
      return item;
    }));
    byId('form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      dispatch({ type: 'enter' });
    });
  }

  #tabs() {
    return /** @type {HTMLButtonElement[]} */ ([...box('panels').querySelectorAll('button')]);
  }

  /** @param {State} state @param {number} now */
  render(state, now) {
    const screen = screenOf(state);
    if (document.body.dataset.screen !== screen) this.#turnTo(screen);
    this.#renderTop(state, screen);
    this.#renderSetup(state);
    this.#renderHome(state);
    this.list.render(state);
    this.settings.render(state);
    this.call.render(state, now);
  }

  /** @param {'setup' | 'home' | 'call'} screen */
  #turnTo(screen) {
    document.body.dataset.screen = screen;
    for (const id of ['setup', 'home', 'call']) show(box(id), id === screen);
    window.scrollTo(0, 0);
  }

  /** @param {State} state @param {string} screen */
  #renderTop(state, screen) {
    const { strings } = this;
    const status = statusOf(state, strings);
    setText(box('status'), status.text);
    setAttribute(box('status'), 'data-tone', status.tone);
    const notice = noticeOf(state, strings);
    setText(box('notice-text'), notice?.text ?? '');
    setAttribute(box('notice'), 'data-tone', notice?.tone ?? null);
    showActions(box('notice-actions'), notice?.actions ?? [], this.actions);
    show(box('notice'), notice !== null);
    const ringing = incomingCall(state);
    const calm = screen === 'call' ? strings.nearby.titles.call : strings.nearby.title;
    const title = ringing ? strings.nearby.titles.ringing(ringing.person.name) : calm;
    if (document.title !== title) document.title = title;
  }

  /** @param {State} state */
  #renderSetup(state) {
    // Do not overwrite a name that the user is typing.
    if (document.activeElement !== input('name')) input('name').value = state.form.name;
    show(box('guest-note'), state.guest);
    enable(button('enter'), state.form.agreed);
    setAttribute(button('enter'), 'aria-busy', state.entered && !state.me ? 'true' : null);
    setText(box('enter-reason'), state.form.agreed ? '' : this.strings.startNeedsRules);
  }

  /** @param {State} state */
  #renderHome(state) {
    const { strings } = this;
    setText(box('home-title'), strings.nearby.panels[state.panel]);
    for (const tab of this.#tabs()) {
      const chosen = tab.dataset.panel === state.panel;
      setAttribute(tab, 'aria-current', chosen ? 'true' : null);
      show(box(`panel-${tab.dataset.panel}`), chosen);
    }
    show(box('missed'), state.missed > 0);
    setText(box('missed'), state.missed > 0 ? String(state.missed) : '');
    setAttribute(box('missed'), 'aria-label', state.missed > 0 ? strings.nearby.missedCount(state.missed) : null);
    setAttribute(box('missed'), 'role', state.missed > 0 ? 'img' : null);
    const after = afterwardsOf(state, strings);
    setText(box('afterwards-text'), after?.text ?? '');
    showActions(box('afterwards-actions'), after?.actions ?? [], this.actions);
    show(box('afterwards'), after !== null);
  }
}
