// The front page: a card for each enabled feature.
import { at } from '../shared/base.js';
import { box, button, show } from '../shared/dom.js';
import { fillIn, stringsFor } from '../shared/strings.js';
import { randomRoomName, roomPath, setUpFeatureLinks, enabledFeatures } from '../shared/features.js';

const guest = new URLSearchParams(location.search).has('guest');
const { language, strings } = stringsFor(navigator.languages);
document.documentElement.lang = language;
document.title = strings.front.title;
fillIn(document, strings);
setUpFeatureLinks(guest);
show(box('guest-note'), guest);
button('new-room').addEventListener('click', () => {
  location.assign(roomPath(randomRoomName(), guest));
});

// Links to a person, a device or a call belong to the nearby page: forward them to it. Old ones may lead here, because
// the nearby page has this address while it is the only enabled feature.
const parts = new URLSearchParams(location.hash.slice(1));
const isNearby = ['person', 'link', 'call'].some((name) => parts.has(name));
if (isNearby && enabledFeatures().includes('nearby')) location.replace(at(`/nearby${location.search}${location.hash}`));
