// Wires the page `/check`: one press tests the camera, the microphone and the network to the server. The result can be sent to support
// as text, or as a link that contains it.
import { checkNetwork } from '../../lib/check/network.js';
import { decodeResult, encodeResult } from '../../lib/check/result.js';
import { systemClock } from '../../lib/clock.js';
import { Client } from '../../lib/index.js';
import { at } from '../shared/base.js';
import { box, button, byId, show } from '../shared/dom.js';
import { run } from '../shared/run.js';
import { setUpFeatureLinks } from '../shared/features.js';
import { fillIn } from '../shared/strings.js';
import { tone } from '../shared/tone.js';
import { Devices } from './devices.js';
import { initial, step } from './state.js';
import { checkStringsFor } from './strings.js';
import { makeTracks } from './test-media.js';
import { View } from './view.js';
import { browserOf, reportOf, summaryOf } from './words.js';

/** @typedef {import('./state.js').State} State */
/** @typedef {import('./state.js').Event} Event */
/** @typedef {import('./state.js').Effect} Effect */

/** The name of the result in the fragment, which browsers do not send to servers. */
const linkName = 'result';

const { language, strings } = checkStringsFor(navigator.languages);
document.documentElement.lang = language;
document.title = strings.check.title;
fillIn(document, strings);
setUpFeatureLinks(new URLSearchParams(location.search).has('guest'));

const page = { host: location.hostname, browser: browserOf(navigator.userAgent) };
const given = new URLSearchParams(location.hash.slice(1)).get(linkName);
const shared = given === null ? null : decodeResult(given);

/** @param {State} state */
const linkTo = ({ measured }) => `${location.origin}${at('/check')}#${linkName}=${encodeResult(measured)}`;
const view = new View(strings, language, linkTo);

/** @type {Record<Effect['do'], (effect: any) => void>} */
const carryOut = { check: () => { check(); }, play: () => { play(); }, copy: ({ what }) => { copy(what); }, share: () => { share(); } };
/** @type {ReturnType<typeof run<State, Event>>} */
const machine = run({
  state: initial({ ...page, shared, isBadLink: given !== null && shared === null }),
  step: (/** @type {State} */ state, /** @type {Event} */ event) => step(state, event, page),
  draw: (/** @type {State} */ state) => {
    view.render(state);
    return null;
  },
  carryOut,
});
const { dispatch } = machine;

async function check() {
  box('checks').focus();
  const report = (/** @type {Partial<import('../../lib/check/verdicts.js').Measurements>} */ known) => dispatch({ type: 'known', known });
  const devices = new Devices({ video: byId('camera-video', HTMLVideoElement), report, heard: (level) => view.showLevel(level) });
  const looked = devices.open().catch(() => report({ camera: 'unknown', microphone: 'unknown' }));
  const network = checkNetwork({
    client: new Client(), host: page.host, rtc: globalThis, clock: systemClock, makeTracks, report,
    fetchHealth: () => fetch(at('/health'), { cache: 'no-store' }),
    isHidden: () => document.visibilityState === 'hidden',
    testing: (rows, secondsLeft) => dispatch({ type: 'testing', rows, secondsLeft }),
  }).catch(() => report({ quality: 'failed' }));
  await Promise.all([looked, network]);
  devices.finish();
  dispatch({ type: 'done' });
  box('result').scrollIntoView({ block: 'nearest' });
}

async function play() {
  const context = new AudioContext();
  const from = context.currentTime + 0.05;
  [523, 659, 784].forEach((frequency, index) => tone(context, frequency, from + index * 0.35, from + index * 0.35 + 0.32, 0.25));
  setTimeout(() => context.close().catch(() => {}), 2000);
}

/** @param {'report' | 'link'} what */
async function copy(what) {
  const link = linkTo(machine.state);
  try {
    await navigator.clipboard.writeText(what === 'link' ? link : reportOf(machine.state.measured, link, strings, language));
    dispatch({ type: 'copied' });
  } catch {
    dispatch({ type: 'copyFailed' });
  }
}

function share() {
  const { sentence } = summaryOf(machine.state.measured, strings);
  const data = { title: strings.check.title, text: sentence, url: linkTo(machine.state) };
  navigator.share(data).catch(() => {}); // Rejects if the user cancels.
}

/** @param {string} id @param {() => Event} event */
const onClick = (id, event) => button(id).addEventListener('click', () => dispatch(event()));
onClick('start', () => ({ type: 'start', at: Date.now() }));
onClick('again', () => ({ type: 'start', at: Date.now() }));
onClick('play', () => ({ type: 'play' }));
onClick('heard', () => ({ type: 'answer', heard: true }));
onClick('not-heard', () => ({ type: 'answer', heard: false }));
onClick('copy', () => ({ type: 'copy', what: 'report' }));
onClick('copy-link', () => ({ type: 'copy', what: 'link' }));
onClick('share', () => ({ type: 'share' }));
show(button('share'), typeof navigator.share === 'function');
// A link that is opened while the page is open.
window.addEventListener('hashchange', () => location.reload());
machine.render();
