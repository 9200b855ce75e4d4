// A page like RouletteTok's: it uses only Socket.IO and OpenTok. Its address may contain another server, options for
// `io.connect`, and an event to ignore.
const parameters = new URLSearchParams(location.search);
const server = parameters.get('server') ?? '';
const { OT } = await import(`${server}/lib/index.js`);
if (server) OT.properties.url = `${server.replace('http', 'ws')}/v1/socket`;

/** The original had its API key in its source. */
const apiKey = '1127';
const size = { width: 288, height: 216 };

// For tests: all events of the socket in order, all invitations to a partner's session, and whether each invitation was
// followed.
Object.assign(window, { OT, heard: [], invitations: [], isWatching: () => Boolean(theirs?.isConnected()) });

const deafTo = parameters.get('deafTo');
const socket = io.connect(server, JSON.parse(parameters.get('options') ?? '{}'));
let mine = null;
let theirs = null;

function say(text) {
  document.getElementById('notification').textContent = text;
}

function box(container) {
  const element = document.createElement('div');
  document.getElementById(container).replaceChildren(element);
  return element;
}

function askForNext() {
  socket.emit('next', { sessionId: mine?.sessionId });
}

function leavePartner() {
  if (theirs?.isConnected()) theirs.disconnect();
}

/** Leaves without requesting another partner. */
function forgetPartner() {
  const left = theirs;
  theirs = null;
  left?.disconnect();
}

function joinOwn({ sessionId, token }) {
  // This function is called again after the connection was lost, so disconnect the previous session.
  mine?.disconnect();
  mine = OT.initSession(apiKey, sessionId);
  say('Connected. Allow your camera.');
  mine.on('sessionConnected', () => {
    const publisher = OT.initPublisher(box('publisherContainer'), { insertMode: 'append', ...size });
    publisher.on('streamCreated', askForNext);
    mine.publish(publisher);
  });
  mine.connect(token, (error) => { if (error) say(`Your session failed: ${error.message}`); });
}

function joinPartner({ sessionId, token }) {
  window.invitations.push({ sessionId, token });
  forgetPartner();
  const joined = OT.initSession(apiKey, sessionId);
  theirs = joined;
  say('Have fun!');
  joined.on({
    streamCreated: ({ stream }) => {
      joined.subscribe(stream, box('subscriberContainer'), { insertMode: 'append', ...size });
    },
    // The original page detected a vanished partner in this way.
    streamDestroyed: () => joined.disconnect(),
    sessionDisconnected: () => { if (theirs === joined) askForNext(); },
  });
  joined.connect(token, (error) => { if (error) say(`The partner's session failed: ${error.message}`); });
}

const handlers = {
  initial: joinOwn,
  subscribe: joinPartner,
  empty: () => say('Nobody is there yet. Waiting…'),
  disconnectPartner: leavePartner,
};
for (const [name, handle] of Object.entries(handlers)) {
  socket.on(name, (given) => {
    window.heard.push(name);
    if (name !== deafTo) handle(given);
  });
}
for (const name of ['connecting', 'connect', 'disconnect', 'reconnect', 'error', 'connect_failed']) {
  socket.on(name, (...given) => window.heard.push([name, ...given].join(' ')));
}
// Without the socket the chat is over, even if video still arrives.
socket.on('disconnect', forgetPartner);

document.getElementById('next').addEventListener('click', () => {
  if (theirs?.isConnected()) socket.emit('disconnectPartners');
  else askForNext();
});
