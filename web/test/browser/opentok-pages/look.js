// A page whose tiles show the default interface in different sizes, light or dark as the visitor prefers.
/* global OT, API_KEY, SESSION_ID, TOKEN, NAME, handleError, log */
document.head.append(Object.assign(document.createElement('style'), {
  textContent: `
    :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
    main { display: flex; flex-wrap: wrap; gap: 12px; }
    h1 { width: 100%; margin: 0; }
    #publisher, #subscriber { display: contents; }
    #log { overflow: hidden; text-overflow: ellipsis; }`,
}));

const style = { nameDisplayMode: 'on', buttonDisplayMode: 'auto', audioLevelDisplayMode: 'on' };
const sizes = [{}, { width: 160, height: 120 }, { width: '100%', height: 220 }];
const session = OT.initSession(API_KEY, SESSION_ID);
const subscribers = {};
session.on('streamCreated', ({ stream }) => {
  const size = sizes[Object.keys(subscribers).length % sizes.length];
  const subscriber = session.subscribe(stream, 'subscriber', { insertMode: 'append', style, ...size }, handleError);
  subscriber.on('connected', () => log(`connected: ${stream.name}`));
  subscribers[stream.name] = subscriber;
});
session.connect(TOKEN, (error) => {
  if (error) return handleError(error);
  return session.publish('publisher', { insertMode: 'append', name: NAME, style }, (refusal) => (refusal ? handleError(refusal) : log('publishing')));
});
Object.assign(window, { session, subscribers });
