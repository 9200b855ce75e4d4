// `/try#session=…&token=…` joins any session: publishes if the token allows it, subscribes to everyone, and sends signals.
// Uses only the SDK's OpenTok API, so this page is also an example of that API. Only the questions for consent are ours.
import { OT } from '../../lib/index.js';
import { showCondition } from '../shared/connection.js';
import { box, button, byId, enable, input, setAttribute, setText, show } from '../shared/dom.js';
import { fillIn, stringsFor } from '../shared/strings.js';
import { captureWords } from './capture.js';
import { claimsOf, endingWords } from './ending.js';

const { language, strings } = stringsFor(navigator.languages);
const words = strings.session;
document.documentElement.lang = language;
fillIn(document, strings);
document.title = words.title;

const log = box('log');
const message = byId('message', HTMLTextAreaElement);
/** @type {any} the SDK's session; null while the user is in none */
let session = null;
/** @type {any} */
let publisher = null;
/** @type {Set<string>} the connectionIds of the other people in the session */
const others = new Set();
/** @type {'recording' | 'broadcast' | null} what the user is asked about */
let asked = null;

/** @param {string} text @param {string} [tone] */
function say(text, tone = 'calm') {
  setText(box('status'), text);
  setAttribute(box('status'), 'data-tone', tone);
}

/** @param {string} text an empty text hides the notice */
function warn(text) {
  setText(box('notice-text'), text);
  show(box('notice'), text !== '');
}

/**
 * Returns the session and the token from the address's fragment, which browsers do not send to servers. Removes the
 * token from the address, because addresses appear in screenshots and are kept in the history.
 */
function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const found = { sessionId: given.get('session')?.trim() ?? '', token: given.get('token')?.trim() ?? '' };
  if (given.has('token')) {
    given.delete('token');
    history.replaceState(history.state, '', `${location.pathname}${location.search}#${given}`);
  }
  return found;
}


/** @param {'door' | 'room'} screen */
function turnTo(screen) {
  document.body.dataset.screen = screen;
  show(box('door'), screen === 'door');
  show(box('room'), screen === 'room');
}

/** @param {string} sessionId @param {string} token */
function join(sessionId, token) {
  warn('');
  say(words.joining, 'busy');
  const claims = claimsOf(token);
  // A token names the API key as its issuer.
  const joining = OT.initSession(String(claims.iss ?? ''), sessionId);
  session = joining;
  listen(joining, claims);
  joining.connect(token, (/** @type {any} */ error) => {
    if (joining !== session) return;
    if (error) failed(error);
    else joined();
  });
}

/** @param {any} error */
function failed(error) {
  session = null;
  say(strings.status.closed, 'bad');
  warn(words.failed(error?.message ?? String(error)));
  turnTo('door');
}

function joined() {
  turnTo('room');
  box('room').focus();
  const { capabilities } = session;
  enable(message, !!capabilities.signal);
  enable(button('send'), !!capabilities.signal);
  if (!capabilities.signal) setText(box('log-hint'), words.noSignals);
  if (capabilities.publish) publish();
  else warn(words.watching);
  tellCapture();
}

function publish() {
  const tile = makeTile(strings.you);
  const { muted, off } = { muted: pressed('mute'), off: pressed('camera-off') };
  const made = OT.initPublisher(tile, {
    insertMode: 'append', width: '100%', height: '100%', label: strings.you, publishAudio: !muted, publishVideo: !off,
  }, (/** @type {any} */ error) => {
    if (made !== publisher) return;
    if (error) {
      tile.remove();
      publisher = null;
      warn(error.message);
      return;
    }
    show(box('toggles'), true);
    session?.publish(made, (/** @type {any} */ refusal) => refusal && warn(refusal.message));
  });
  publisher = made;
  showCondition(tile, made, 'mine', strings);
  made.on('destroyed', () => tile.remove());
}

/** @param {any} joining @param {Record<string, unknown>} claims of the token */
function listen(joining, claims) {
  /** @param {string} name @param {(event: any) => void} handle */
  const on = (name, handle) => joining.on(name, (/** @type {any} */ event) => joining === session && handle(event));
  on('connectionCreated', ({ connection }) => {
    if (connection.connectionId !== joining.connection?.connectionId) others.add(connection.connectionId);
    tellWho();
  });
  on('connectionDestroyed', ({ connection }) => {
    others.delete(connection.connectionId);
    tellWho();
  });
  on('streamCreated', ({ stream }) => watch(joining, stream));
  for (const name of ['archiveStarted', 'archiveStopped', 'broadcastStarted', 'broadcastStopped']) on(name, tellCapture);
  on('signal', ({ type, data, from }) => hear(String(type ?? '').replace(/^signal:?/, ''), data, from));
  on('sessionReconnecting', () => say(words.away, 'warn'));
  on('sessionReconnected', tellWho);
  on('sessionDisconnected', ({ reason, error }) => {
    tidy();
    say(reason === 'clientDisconnected' ? words.left : words.outside);
    warn(endingWords({ reason, error, claims }, words));
  });
}

function tellWho() {
  if (document.body.dataset.screen !== 'room') return;
  const { status } = captureWords(session, words);
  if (status) say(status, 'bad');
  else say(others.size ? words.here(others.size) : words.alone, others.size ? 'good' : 'calm');
}

/** Shows whether the session is being recorded or broadcast live, and asks for consent if the server does. */
function tellCapture() {
  const question = session && captureWords(session, words).question;
  asked = question?.of ?? null;
  show(box('consent'), asked !== null);
  setText(box('consent-text'), question?.text ?? '');
  setText(button('accept'), question?.accept ?? '');
  tellWho();
}

/** @param {boolean} accepts */
async function answer(accepts) {
  const [answering, about] = [session, asked];
  if (!answering || !about) return;
  try {
    await (about === 'recording' ? answering.acceptRecording(accepts) : answering.acceptBroadcast(accepts));
  } catch (/** @type {any} */ error) {
    if (answering === session) warn(error.message);
  }
  if (answering === session) tellCapture();
}

/** @param {any} joined @param {any} stream */
function watch(joined, stream) {
  const name = stream.name || words.nameless;
  const tile = makeTile(name);
  const options = { insertMode: 'append', width: '100%', height: '100%', fitMode: 'contain', label: name };
  const subscriber = joined.subscribe(stream, tile, options, (/** @type {any} */ error) => {
    if (error && error.name !== 'OT_STREAM_DESTROYED') warn(error.message);
  });
  subscriber.on('destroyed', () => tile.remove());
  offerSound(subscriber, tile);
  showCondition(tile, subscriber, 'theirs', strings);
}

/**
 * Shows a button that turns on the sound while the browser blocks it. Browsers play no sound before the first click,
 * and on a page that joins directly from a link, the user has not clicked yet.
 * @param {any} subscriber
 * @param {HTMLElement} tile
 */
function offerSound(subscriber, tile) {
  const sound = document.createElement('button');
  sound.type = 'button';
  sound.className = 'button sound';
  sound.textContent = strings.unblock;
  sound.addEventListener('click', () => OT.unblockAudio());
  subscriber.on('audioBlocked', () => tile.append(sound));
  subscriber.on('audioUnblocked', () => sound.remove());
}

/** @param {string} name */
function makeTile(name) {
  const tile = document.createElement('figure');
  tile.className = 'tile';
  const caption = document.createElement('figcaption');
  caption.dir = 'auto';
  caption.textContent = name;
  tile.append(caption);
  box('tiles').append(tile);
  return tile;
}

/**
 * Shows a signal. Unless its type is `chat` or empty, shows the type too, for testing. Ignores `typing`.
 * @param {string} type
 * @param {unknown} data
 * @param {any} from
 */
function hear(type, data, from) {
  if (type === 'typing') return;
  const mine = from?.connectionId === session.connection?.connectionId;
  const line = document.createElement('p');
  line.className = mine ? 'line me' : 'line partner';
  const who = document.createElement('span');
  who.className = 'from';
  who.textContent = mine ? strings.you : from?.data || words.nameless;
  const text = document.createElement('span');
  text.className = 'words';
  text.dir = 'auto';
  text.textContent = type === 'chat' || type === '' ? String(data ?? '') : `${type}: ${data ?? ''}`;
  line.append(who, text);
  log.append(line);
  log.scrollTop = log.scrollHeight;
  show(box('log-hint'), false);
}

function send() {
  const data = message.value.trim();
  if (!data || !session || button('send').disabled) return;
  session.signal({ type: 'chat', data }, (/** @type {any} */ error) => {
    if (error) warn(error.message);
    else if (message.value.trim() === data) message.value = '';
  });
}

/** Forgets the session, and shows the form again. Called when the session has ended or the user leaves it. */
function tidy() {
  session = null;
  others.clear();
  publisher?.destroy();
  publisher = null;
  box('tiles').replaceChildren();
  log.replaceChildren();
  show(box('log-hint'), true);
  setText(box('log-hint'), words.signalsHint);
  show(box('toggles'), false);
  warn('');
  turnTo('door');
  tellCapture();
}

const pressed = (/** @type {string} */ id) => button(id).getAttribute('aria-pressed') === 'true';

/** @param {string} id @param {(on: boolean) => void} carryOut */
function toggle(id, carryOut) {
  button(id).addEventListener('click', () => {
    setAttribute(button(id), 'aria-pressed', String(!pressed(id)));
    carryOut(pressed(id));
  });
}

button('accept').addEventListener('click', () => answer(true));
button('refuse').addEventListener('click', () => answer(false));
toggle('mute', (on) => publisher?.publishAudio(!on));
toggle('camera-off', (on) => publisher?.publishVideo(!on));
button('leave').addEventListener('click', () => {
  const leaving = session;
  tidy();
  leaving?.disconnect();
  say(words.left);
});
byId('composer', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
message.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
byId('door', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  const sessionId = input('session').value.trim();
  const token = byId('token', HTMLTextAreaElement).value.trim();
  setText(box('door-error'), sessionId && token ? '' : words.needsBoth);
  if (sessionId && token) join(sessionId, token);
});

/**
 * Fills in the form from the address, and joins that session unless the user is in one. Called when the page is
 * loaded, and again when the fragment of the address changes.
 */
function arrive() {
  const { sessionId, token } = fromAddress();
  input('session').value = sessionId;
  byId('token', HTMLTextAreaElement).value = token;
  if (session) return;
  turnTo('door');
  if (sessionId && token) join(sessionId, token);
}
window.addEventListener('hashchange', arrive);
arrive();
