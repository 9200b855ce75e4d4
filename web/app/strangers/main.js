// Wires the page: elements send events to the state machine, its effects are carried out, and every state is drawn. The rules
// are in `state.js`.
import { openCheck } from '../shared/check-link.js';
import { box, button, onActions } from '../shared/dom.js';
import { deviceMemory, formMemory, identityMemory } from '../shared/memory.js';
import { run } from '../shared/run.js';
import { fillIn, stringsFor } from '../shared/strings.js';
import { setUpFeatureLinks } from '../shared/features.js';
import { Chat } from './chat.js';
import { setUpForm } from './form.js';
import { allowedBefore, pageIsSecure, Preview } from '../shared/preview.js';
import { Report } from './report.js';
import { Server } from './server.js';
import { initialState, step } from './state.js';
import { View } from './view.js';

/** How often to request the number of people online, while the page is visible (milliseconds). */
const countEvery = 10_000;
/**
 * How long Escape is ignored after a match (milliseconds), so that pressing it twice by mistake does not skip a
 * partner the user has not seen yet.
 */
const escapeRest = 700;

const guest = new URLSearchParams(location.search).has('guest');
const { language, strings } = stringsFor(navigator.languages);
document.documentElement.lang = language;
fillIn(document, strings);

/** @param {import('./types.js').Event} event */
function dispatch(event) {
  machine.dispatch(event);
}

const forms = formMemory(guest);
const view = new View(strings);
const server = new Server(identityMemory(guest), strings, dispatch);
const preview = new Preview(strings, dispatch, deviceMemory(guest));
const chat = new Chat(strings, dispatch, (typing) => server.tellTyping(typing));
const report = new Report(strings, dispatch);
let matchedAt = 0;

/** @type {Record<string, (effect: any) => void>} */
const carryOut = {
  connect: () => server.connect(machine.state.form.name),
  remember: ({ form }) => forms.remember(form),
  openMedia: ({ camera }) => preview.open({ camera, muted: machine.state.muted, cameraOff: machine.state.cameraOff }),
  count: () => server.askCount(),
  useMedia: () => server.usePublisher(preview.publisher),
  closeMedia: () => {
    server.usePublisher(null);
    preview.close();
  },
  mute: ({ on }) => preview.publisher?.publishAudio(!on),
  cameraOff: ({ on }) => preview.publisher?.publishVideo(!on),
  start: ({ form }) => server.start(form),
  next: () => server.next(),
  stop: () => server.stop(),
  say: ({ text }) => server.say(text),
  block: ({ matchId }) => server.block(matchId),
  keep: ({ matchId }) => server.keep(matchId),
  report: ({ matchId, reason, alsoBlock }) => server.report(reason, matchId, alsoBlock),
  clearDraft: () => chat.clearDraft(),
  matched: () => {
    matchedAt = Date.now();
  },
  later: ({ after, event }) => window.setTimeout(() => dispatch(event), after),
  focus: ({ on }) => box(on).focus({ preventScroll: true }),
};

const machine = run({
  state: initialState({ form: forms.recall(), guest }),
  step,
  carryOut,
  draw(state, now) {
    view.render(state, now);
    chat.render(state);
    report.render(state);
    // While a countdown is shown, draw again each second.
    const pause = state.trouble?.pause ?? (state.chat.is === 'waiting' ? state.chat.pause : null);
    return pause && pause.until > now ? Math.min(now + 1000, pause.until) : null;
  },
});

// Handle the buttons of a notice.
onActions({
  retryLink: () => dispatch({ type: 'retryLink' }),
  takeOver: () => dispatch({ type: 'retryLink' }),
  reload: () => location.reload(),
  start: () => dispatch({ type: 'start' }),
  turnOn: () => dispatch({ type: 'openMedia' }),
  openMedia: () => dispatch({ type: 'openMedia' }),
  openVoice: () => dispatch({ type: 'openMedia', camera: false }),
  useText: () => dispatch({ type: 'useText' }),
  report: () => dispatch({ type: 'ask', about: 'report' }),
  dismiss: () => dispatch({ type: 'dismiss' }),
  unblock: () => server.unblockSound(),
  check: openCheck,
});

/** @param {string} id @param {import('./types.js').Event} event */
const onClick = (id, event) => button(id).addEventListener('click', () => dispatch(event));
onClick('next', { type: 'next' });
onClick('stop', { type: 'stop' });
onClick('mute', { type: 'mute' });
onClick('camera-off', { type: 'cameraOff' });
onClick('report', { type: 'ask', about: 'report' });
onClick('keep', { type: 'keep' });
onClick('block', { type: 'ask', about: 'block' });
onClick('block-yes', { type: 'block' });
onClick('block-no', { type: 'unask' });

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.repeat || event.isComposing) return;
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || document.fullscreenElement) return;
  const inField = event.target instanceof Element && event.target.closest('input, textarea, select, dialog');
  if (inField || machine.state.chat.is !== 'matched') return;
  if (machine.state.question) dispatch({ type: 'unask' });
  else if (Date.now() - matchedAt > escapeRest) dispatch({ type: 'next' });
});

const count = () => {
  if (document.visibilityState === 'visible' && machine.state.link.is === 'online') server.askCount();
};
window.setInterval(count, countEvery);
document.addEventListener('visibilitychange', count);

setUpForm(machine.state.form, strings, dispatch);
setUpFeatureLinks(guest, ['#keep-link']);
machine.render();
server.connect(machine.state.form.name);
const wantsPreview = machine.state.form.mode === 'video' && pageIsSecure() && await allowedBefore();
if (wantsPreview && machine.state.media.is === 'off') dispatch({ type: 'openMedia' });
