// Wires the page `/nearby`: elements send events to the state machine, its effects are carried out, and every state is drawn.
// The rules are in `state.js`.
import { openCheck } from '../shared/check-link.js';
import { box, onActions } from '../shared/dom.js';
import { deviceMemory, identityMemory } from '../shared/memory.js';
import { closeMenus } from '../shared/rows.js';
import { run } from '../shared/run.js';
import { fillIn } from '../shared/strings.js';
import { setUpFeatureLinks } from '../shared/features.js';
import { incomingCall, currentCall } from './call-state.js';
import { linkTo } from './list-view.js';
import { Media } from './media.js';
import { nearbyMemory } from './memory.js';
import { Notifications } from './notify.js';
import { Position } from './position.js';
import { Ring } from './ring.js';
import { Server } from './server.js';
import { initialState, personIdIn, step } from './state.js';
import { nearbyStringsFor, unitFor } from './strings.js';
import { View } from './view.js';
import { soundOf } from './words.js';

const guest = new URLSearchParams(location.search).has('guest');
const { language, strings } = nearbyStringsFor(navigator.languages);
document.documentElement.lang = language;
fillIn(document, strings);

/** @param {import('./types.js').Event} event */
function dispatch(event) {
  machine.dispatch(event);
}

const memory = nearbyMemory(guest);
const view = new View(strings, dispatch);
const media = new Media(strings, dispatch, deviceMemory(guest));
const server = new Server(identityMemory(guest), dispatch, strings, () => media.publisher);
const position = new Position((fix) => server.move(fix), (is) => dispatch({ type: 'position', is }));
const ring = new Ring((silent) => {
  if (silent !== machine.state.ringSilent) dispatch({ type: 'ringSilent', silent });
});
const notifications = new Notifications(strings.nearby.notification, guest);

/** @type {Record<string, (effect: any) => void>} */
const carryOut = {
  connect: () => server.connect(),
  remember: ({ form, kept }) => memory.remember(form, kept),
  appear: ({ as }) => {
    server.appear(as);
    tellPush();
  },
  leave: () => server.request((people) => people.leave()),
  set: ({ change }) => server.request((people) => people.set(change), { done: () => dispatch({ type: 'saved' }) }),

  watchPosition: () => position.start(),
  stopPosition: () => position.stop(),
  forgetPosition: () => server.request((people) => people.forgetPosition()),
  watch: (page) => server.watch(page),
  unwatch: () => server.request((people) => people.unwatch()),
  find: ({ personId }) => server.find(personId),

  askContacts: () => server.request((people) => people.contacts(), { done: (people) => dispatch({ type: 'contacts', people }) }),
  removeContact: ({ personId }) => server.request((people) => people.removeContact(personId)),
  keep: ({ callId }) => server.request((people) => people.keep({ callId }), {
    refused: (error) => {
      dispatch({ type: 'keepRefused', callId });
      throw error;
    },
  }),
  askLog: ({ before }) => server.askLog(before),
  forgetCall: ({ callId }) => server.request(() => server.calls.forget(callId ?? undefined)),
  seen: ({ calls }) => calls.forEach((/** @type {string} */ callId) => server.request(() => server.calls.seen(callId))),

  askDevices: () => server.request((people) => people.devices(), { done: (devices) => dispatch({ type: 'devices', devices }) }),
  makeCode: () => server.request((people) => people.makeLinkCode(), { done: (made) => dispatch({ type: 'codeMade', ...made }) }),
  useLink: ({ code }) => server.request((people) => people.useLink(code, deviceLabel()), { done: () => dispatch({ type: 'linked' }) }),
  unlink: ({ deviceId }) => server.request((people) => people.unlink(deviceId), { done: () => dispatch({ type: 'unlinked' }) }),
  askBlocked: () => server.request((people) => people.blocked(), { done: (people) => dispatch({ type: 'blocked', people }) }),
  block: ({ personId }) => server.request((people) => people.block(personId), { done: () => dispatch({ type: 'blockDone' }) }),
  unblock: ({ personId }) => server.request((people) => people.unblock(personId), { done: () => dispatch({ type: 'unblockDone' }) }),
  export: () => server.request((people) => people.export(), {
    done: (blob) => save(blob, 'confab.json'), refused: () => dispatch({ type: 'refused', code: 'export_failed' }),
  }),
  deleteEverything: () => server.request(async (people) => {
    await notifications.disable(server.client).catch(() => {});
    await people.deleteEverything();
  }),
  push: ({ on }) => pushWanted(on),

  openMedia: ({ camera }) => media.open(camera),
  addCamera: () => media.addCamera(),
  switchCamera: () => media.switchCamera(),
  closeMedia: () => media.close(),
  mute: ({ on }) => media.mute(on),
  call: ({ person, video }) => server.call(person, video),
  accept: ({ line, video }) => server.accept(line, video),
  decline: ({ line }) => server.decline(line),
  hangUp: ({ line }) => server.hangUp(line),
  setVideo: ({ line, on }) => server.setVideo(line, on),

  copy: ({ personId }) => copy(linkTo(personId)),
  later: ({ after, event }) => window.setTimeout(() => dispatch(event), after),
  focus: ({ on }) => box(on).focus({ preventScroll: true }),
};

const machine = run({
  state: initialState({
    form: memory.recallForm(), kept: memory.recall(unitFor(navigator.languages)), guest, arrival: arrival(),
  }),
  step,
  carryOut,
  draw(state, now) {
    view.render(state, now);
    ring.set(soundOf(state));
    const ringing = incomingCall(state);
    notifications.show(ringing && { id: ringing.id, name: ringing.person.name });
    // Draw again when the displayed duration of the call changes, which is once a second.
    const since = currentCall(state)?.activeAt;
    return since ? now + 1000 - ((now - since) % 1000) : null;
  },
});

// Handle the buttons of a notice.
onActions({
  retryLink: () => dispatch({ type: 'retryLink' }),
  takeOver: () => dispatch({ type: 'retryLink' }),
  reload: () => location.reload(),
  dismiss: () => dispatch({ type: 'dismiss' }),
  callAgain: () => dispatch({ type: 'callAgain' }),
  callBack: () => dispatch({ type: 'callAgain' }),
  callVoice: () => dispatch({ type: 'call', person: machine.state.trouble?.person, video: false }),
  callVideo: () => dispatch({ type: 'call', person: machine.state.trouble?.person, video: true }),
  keep: () => dispatch({ type: 'keep' }),
  unblockSound: () => server.unblockSound(),
  check: openCheck,
});

document.addEventListener('visibilitychange', () => {
  dispatch({ type: 'shown', visible: document.visibilityState === 'visible' });
});
window.addEventListener('hashchange', () => {
  const asked = arrival();
  if (asked.find || asked.link || asked.call) dispatch({ type: 'arrived', ...asked });
});
// The service worker asks whether this page rings for calls, and reports a click on a call's notification.
navigator.serviceWorker?.addEventListener('message', ({ data, ports }) => {
  const { entered, me, link } = machine.state;
  if (data?.type === 'rings') ports[0]?.postMessage(entered && me !== null && link.is === 'online');
  if (data?.type === 'call' && !guest) dispatch({ type: 'arrived', call: true });
});

/**
 * Returns what the address requests: `find` is the id of a person to find, or null; `link` is a code that links this
 * device, or null; `call` is true if the user pressed a call's notification.
 */
function arrival() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const link = parts.get('link');
  const call = parts.has('call') && !guest;
  // Remove a code or a call from the address: a code works once and a call is short-lived, so a reload must not try
  // them again.
  if (link || call) history.replaceState(null, '', location.pathname + location.search);
  return { find: personIdIn(parts.get('person') ?? ''), link, call };
}

/** Updates the push status. Registers again if push was on, in case the server no longer has the registration. */
async function tellPush() {
  const is = await notifications.state(server.client, machine.state.kept.push);
  dispatch({ type: 'pushIs', is });
  if (is === 'on') pushWanted(true);
}

/** @param {boolean} on */
function pushWanted(on) {
  server.request(() => (on ? notifications.enable(server.client) : notifications.disable(server.client)), {
    done: (is) => dispatch({ type: 'pushIs', is }),
    refused: (error) => {
      dispatch({ type: 'pushIs', is: 'off' });
      throw error;
    },
  });
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    dispatch({ type: 'copied' });
  } catch {
    dispatch({ type: 'refused', code: 'copy_failed' });
  }
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // After a minute, the download no longer needs the URL.
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Returns the name of this device for the user's list of devices, such as `Firefox, Linux`. Empty if nothing is known. */
function deviceLabel() {
  const agent = navigator.userAgent;
  const browser = ['Firefox', 'Edg', 'OPR', 'Chrome', 'Safari'].find((name) => agent.includes(`${name}/`));
  const system = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS', 'Linux'].find((name) => agent.includes(name));
  return [/** @type {Record<string, string>} */ ({ Edg: 'Edge', OPR: 'Opera' })[browser ?? ''] ?? browser, system].filter(Boolean).join(', ');
}

setUpFeatureLinks(guest);
view.setUp(machine.state.form, machine.state.kept);
closeMenus();
notifications.start();
machine.render();
server.connect();
