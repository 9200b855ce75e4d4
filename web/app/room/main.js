// Wires the page: elements send events to the state machine, its effects are carried out, and every state is drawn. The rules
// are in `state.js`.
import { at } from '../shared/base.js';
import { openCheck } from '../shared/check-link.js';
import { box, button, onActions } from '../shared/dom.js';
import { deviceMemory, identityMemory } from '../shared/memory.js';
import { allowedBefore, pageIsSecure, Preview } from '../shared/preview.js';
import { recentRooms } from '../shared/recent-rooms.js';
import { closeMenus } from '../shared/rows.js';
import { run } from '../shared/run.js';
import { fillIn } from '../shared/strings.js';
import { arrivalIn, namesItsHolder } from './address.js';
import { Dialogs } from './dialogs.js';
import { Hearing } from './hearing.js';
import { listenToKeys } from './keys.js';
import { knockSound } from './knock-sound.js';
import { roomMemory } from './memory.js';
import { PanelView } from './panel-view.js';
import { Output } from './output.js';
import { followInPip, togglePip } from './pip.js';
import { Screen } from './screen.js';
import { Server } from './server.js';
import { publisherOptions } from './settings.js';
import { Stage } from './stage.js';
import { initialState, step } from './state.js';
import { roomStringsFor } from './strings.js';
import { View } from './view.js';

const arrival = arrivalIn(location, history.state);
// Remove the token from the address, because users copy links from there. The history entry keeps it for a reload.
if (arrival.token !== null) history.replaceState({ token: arrival.token }, '', location.pathname + location.search);
// If the user opens a new invitation to the same room in this tab, reload the page to use its token.
window.addEventListener('hashchange', () => { if (arrivalIn(location).token !== null) location.reload(); });
const { guest } = arrival;
const { language, strings } = roomStringsFor(navigator.languages);
document.documentElement.lang = language;
fillIn(document, strings);

/** @param {import('./types.js').Event} event */
function dispatch(event) {
  machine.dispatch(event);
}

const memory = roomMemory(guest);
const hearing = new Hearing();
const devices = deviceMemory(guest);
const preview = new Preview(strings, dispatchOfPreview, devices, {
  keepsLost: true,
  publisherOptions: () => publisherOptions(machine.state.kept.settings),
  heard: (level) => {
    if (!machine.state.muted && hearing.heard(level, Date.now())) dispatch({ type: 'sound', is: hearing.verdict });
  },
});
const server = new Server(identityMemory(guest), dispatchOfServer, arrival.token);
const screen = new Screen(dispatch, (publisher) => server.request((room) => room.publish(publisher)));
const view = new View(strings, dispatch);
const output = new Output(strings, devices, () => stage.videos);
/** @type {Stage} */
const stage = new Stage(strings, dispatch, (streamId) => server.subscriberOf(streamId), () => inviteLink(), (video) => output.apply(video));
const panel = new PanelView(strings, dispatch, {
  send: async (file, transfer) => server.room?.files.send(file, transfer),
  fetch: async (fileId) => server.room?.files.fetch(fileId),
  remove: (fileId) => server.request((room) => room.files.remove(fileId), ({ code, message }) => {
    // The file was removed by someone else or has expired, which `fileRemoved` reports.
    if (code !== 'not_found') dispatch({ type: 'refused', code, message });
  }),
  failed: (error) => dispatch({ type: 'refused', ...error }),
});
const dialogs = new Dialogs(strings, dispatch, () => inviteLink());

/** @type {Record<string, (effect: any) => void>} */
const carryOut = {
  connect: ({ settings }) => server.connect(settings),
  remember: ({ kept }) => memory.remember(kept),
  join: ({ join }) => server.join(join),
  leave: () => server.leave(),
  publish: () => server.request((room) => { if (preview.publisher) room.publish(preview.publisher); }),

  openMedia: ({ camera }) => {
    hearing.reset();
    preview.open({ camera, muted: machine.state.muted, cameraOff: machine.state.cameraOff });
  },
  addCamera: () => preview.addCamera(),
  mute: ({ on }) => {
    hearing.reset();
    preview.publisher?.publishAudio(!on);
  },
  cameraOff: ({ on }) => preview.publisher?.publishVideo(!on),
  openScreen: () => screen.open(),
  closeScreen: () => screen.close(),

  say: ({ text }) => server.request((room) => room.say(text), (error) => dispatch({ type: 'unsaid', text, ...error })),
  restoreDraft: ({ text }) => panel.chat.restore(text),
  consent: ({ accept }) => server.request((room) => room.acceptRecording(accept)),
  broadcastConsent: ({ accept }) => server.request((room) => room.acceptBroadcast(accept)),
  record: ({ on }) => server.request((room) => (on ? room.startRecording() : room.stopRecording()), (error) => dispatch({ type: 'recordRefused', ...error })),
  raiseHand: ({ raised }) => server.request((room) => room.raiseHand(raised)),
  react: ({ reaction }) => server.request((room) => room.react(reaction)),
  admit: ({ connectionId }) => server.request((room) => room.admit(connectionId)),
  deny: ({ connectionId }) => server.request((room) => room.deny(connectionId)),
  muteOther: ({ connectionId }) => server.request((room) => room.mute(connectionId ?? undefined)),
  stopShareOf: ({ connectionId }) => server.request((room) => room.stopShare(connectionId)),
  setRole: ({ connectionId, role }) => server.request((room) => room.setRole(connectionId, role)),
  remove: ({ connectionId, ban }) => server.request((room) => room.remove(connectionId, { ban })),
  set: ({ change }) => server.request((room) => room.set(change)),

  knockSound: () => knockSound(),
  later: ({ after, event }) => window.setTimeout(() => dispatch(event), after),
  focus: ({ on }) => box(on === 'people' ? 'people-button' : on).focus({ preventScroll: true }),
};

const machine = run({
  state: initialState({
    address: arrival.name, kept: memory.recall(), guest, hasToken: arrival.token !== null, isNamed: namesItsHolder(arrival.token), mesh: arrival.mesh,
    isFramed: window.parent !== window,
  }),
  step,
  carryOut,
  draw(state) {
    view.render(state);
    stage.render(state);
    panel.render(state);
    dialogs.render(state);
    followInPip(stage.focusVideo);
    return null;
  },
});

/** @param {import('./types.js').Event} event */
function dispatchOfPreview(event) {
  // Another microphone is in use: forget what the previous one picked up.
  if (event.type === 'mediaBack' && event.kind !== 'video') hearing.reset();
  dispatch(event);
  if (event.type !== 'mediaOn') return;
  output.list();
  // The server may refuse the video of a camera that is turned on later. The SDK continues to offer it, and the server
  // may accept it then.
  preview.publisher?.off('videoRefused videoRefusalOver').on({
    videoRefused: (/** @type {any} */ { error }) => dispatch({ type: 'fault', of: 'video', code: error.code, isFinal: false }),
    videoRefusalOver: () => dispatch({ type: 'faultOver', of: 'video' }),
  });
}

/**
 * Passes server events to the state machine. Decides here what the end of a publisher means, because only this file
 * knows which publisher is the camera and which is the screen.
 * @param {import('./types.js').Event} event
 */
function dispatchOfServer(event) {
  // Users who arrive with an application's token did not choose this room, so do not add it to the recent rooms.
  if (event.type === 'joined' && arrival.token === null) recentRooms(guest).remember(event.room.name, event.room.options.media === 'mesh');
  if (event.type === 'mutedByHost' && event.publisher !== preview.publisher) return;
  if (event.publisher && (event.type === 'fault' || event.type === 'faultOver')) {
    return dispatch({ ...event, of: event.publisher === preview.publisher ? 'camera' : 'screen' });
  }
  if (event.type !== 'unpublished') return dispatch(event);
  if (event.publisher === preview.publisher) {
    // `mediaStopped` means that the devices were disconnected. For any other reason, the preview continues but others
    // no longer receive the stream: a moderator ended it, or the server rejected it.
    return dispatch(event.reason === 'mediaStopped' ? { type: 'mediaFailed', why: 'lost' } : { type: 'refused', code: 'not_sent', message: '' });
  }
  // Ignore the end of a publisher that was replaced. If the capture of the screen ended, `Screen` has already reported
  // it.
  if (event.publisher !== screen.publisher || event.reason === 'mediaStopped') return;
  const reasons = /** @type {Record<string, string>} */ ({ forceUnpublished: 'stoppedByHost', not_permitted: 'share_hosts' });
  dispatch({ type: 'screenOff', why: reasons[event.reason] ?? 'share_failed' });
  screen.close();
}

/**
 * Returns the address to share: this room's address without the current query and fragment, with `media=mesh` for a
 * mesh room.
 * @returns {string}
 */
function inviteLink() {
  const link = new URL(location.origin + location.pathname);
  if (machine.state.mesh) link.searchParams.set('media', 'mesh');
  return link.href;
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(inviteLink());
    dispatch({ type: 'copied' });
  } catch {
    dispatch({ type: 'refused', code: 'copy_failed', message: '' });
  }
}

/** @param {string} id @param {import('./types.js').Event} event */
const onClick = (id, event) => button(id).addEventListener('click', () => dispatch(event));
onClick('mute', { type: 'mute' });
onClick('camera-off', { type: 'cameraOff' });
onClick('share', { type: 'share' });
onClick('hand', { type: 'hand' });
onClick('react', { type: 'popup', is: 'react' });
onClick('layout', { type: 'popup', is: 'layout' });
onClick('more', { type: 'popup', is: 'more' });
onClick('chat', { type: 'panel', is: 'chat' });
onClick('people-button', { type: 'panel', is: 'people' });
onClick('invite', { type: 'dialog', is: 'invite' });
onClick('leave', { type: 'leave' });
onClick('join-cancel', { type: 'cancel' });
onClick('waiting-cancel', { type: 'cancel' });
onClick('before-settings', { type: 'dialog', is: 'settings' });
onClick('more-settings', { type: 'dialog', is: 'settings' });
onClick('record', { type: 'record' });
onClick('more-options', { type: 'dialog', is: 'options' });
onClick('more-keys', { type: 'dialog', is: 'keys' });
for (const id of ['alone-copy', 'invite-copy']) button(id).addEventListener('click', copyLink);
button('pip').addEventListener('click', () => {
  dispatch({ type: 'popup', is: 'more' });
  togglePip(stage.focusVideo);
});

onActions({
  retryLink: () => dispatch({ type: 'retryLink' }),
  takeOver: () => dispatch({ type: 'retryLink' }),
  reload: () => location.reload(),
  dismiss: () => dispatch({ type: 'dismiss' }),
  again: () => dispatch({ type: 'again' }),
  otherRooms: () => location.assign(at(guest ? '/rooms?guest=1' : '/rooms')),
  openMedia: () => dispatch({ type: 'openMedia' }),
  openVoice: () => dispatch({ type: 'openMedia', camera: false }),
  turnOn: () => dispatch({ type: 'openMedia' }),
  devices: () => dispatch({ type: 'dialog', is: 'settings' }),
  unblock: () => server.unblockSound(),
  beRecorded: () => dispatch({ type: 'consent', accept: true }),
  notRecorded: () => dispatch({ type: 'consent', accept: false }),
  beBroadcast: () => dispatch({ type: 'broadcastConsent', accept: true }),
  notBroadcast: () => dispatch({ type: 'broadcastConsent', accept: false }),
  check: openCheck,
});

if (guest) /** @type {HTMLAnchorElement} */ (box('to-rooms')).search = '?guest=1';
listenToKeys(() => machine.state, dispatch);
closeMenus();
view.setUp(machine.state);
dialogs.setUp(machine.state);
machine.render();
// Without a room name there is nothing to join.
if (arrival.name) {
  server.connect(machine.state.kept.settings);
  const wantsPreview = pageIsSecure() && await allowedBefore();
  if (wantsPreview && machine.state.media.is === 'off') dispatch({ type: 'openMedia' });
}
