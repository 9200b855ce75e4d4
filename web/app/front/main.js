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

// Forward links to people, devices and calls to the nearby page. Old links may lead here: if it was once the only
// enabled feature, the nearby page had this address.
const parts = new URLSearchParams(location.hash.slice(1));
const isNearby = ['person', 'link', 'call'].some((name) => parts.has(name));
if (isNearby && enabledFeatures().includes('nearby')) location.replace(at(`/nearby${location.search}${location.hash}`));
