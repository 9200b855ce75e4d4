// Wires the page `/rooms`: opens a new room, or a room by its name.
import { box, button, icon, input, setText, show } from '../shared/dom.js';
import { recentRooms } from '../shared/recent-rooms.js';
import { fillIn, stringsFor } from '../shared/strings.js';
import { randomRoomName, roomPath, setUpFeatureLinks } from '../shared/features.js';
import { roomNameIn } from './room-name.js';

const guest = new URLSearchParams(location.search).has('guest');
const { language, strings } = stringsFor(navigator.languages);
const texts = strings.roomsPage;
document.documentElement.lang = language;
document.title = texts.title;
fillIn(document, strings);
setUpFeatureLinks(guest);
show(box('guest-note'), guest);

const recent = recentRooms(guest);
const field = input('name');

/** @param {string} name */
function go(name) {
  // Do not add the room to the recent rooms here: the room's page does so when the user has joined.
  location.assign(roomPath(name, guest, input('mesh').checked));
}

/** @param {string} text */
function showError(text) {
  setText(box('name-error'), text);
  field.setAttribute('aria-invalid', String(text !== ''));
}

/** @param {import('../shared/recent-rooms.js').RecentRoom} room */
function rowOf({ name, mesh }) {
  const row = document.createElement('li');
  const link = Object.assign(document.createElement('a'), { href: roomPath(name, guest, mesh), textContent: name });
  const forget = Object.assign(document.createElement('button'), { type: 'button', className: 'button quiet round' });
  forget.setAttribute('aria-label', texts.forget(name));
  forget.append(icon('cross'));
  forget.addEventListener('click', () => {
    recent.forget(name);
    drawRecent();
    field.focus();
  });
  row.append(link, forget);
  return row;
}

function drawRecent() {
  const rooms = recent.recall();
  box('recent-rooms').replaceChildren(...rooms.map(rowOf));
  show(box('recent'), rooms.length > 0);
}

button('create').addEventListener('click', () => go(randomRoomName()));
field.addEventListener('input', () => showError(''));
box('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const typed = roomNameIn(field.value);
  if ('name' in typed) return go(typed.name);
  showError(texts[typed.error]);
  field.focus();
});
// The browser may restore this page from its back/forward cache without loading it.
window.addEventListener('pageshow', drawRecent);
drawRecent();
