// The look of the default interface. A page's own rules for the `OT_` classes have precedence, because these rules are in a layer.

const rules = `@layer opentok {
  .OT_root { background: #000; color: #fff; font: 14px/1.4 system-ui, sans-serif; }
  .OT_root[hidden], .OT_root [hidden], .OT_mode-off { display: none !important; }
  .OT_video-poster { position: absolute; inset: 0; display: none; background: #222 center / contain no-repeat; }
  .OT_audio-only .OT_video-poster { display: block; }
  .OT_name { position: absolute; inset: 0 0 auto; margin: 0; padding: 6px 44px 6px 10px; overflow: hidden; background: #000a;
    font: inherit; text-overflow: ellipsis; white-space: nowrap; }
  .OT_mute { position: absolute; right: 6px; bottom: 6px; width: 34px; height: 34px; padding: 6px; border: 0; border-radius: 50%;
    background: #000b; color: #fff; cursor: pointer; }
  .OT_mute svg { display: block; width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; }
  .OT_mute .OT_slash { display: none; }
  .OT_mute.OT_active .OT_slash { display: inline; }
  .OT_mute:focus-visible, .OT_audio-blocked:focus-visible { outline: 3px solid #fff; outline-offset: -3px; }
  .OT_name.OT_mode-auto, .OT_mute.OT_mode-auto { opacity: 0; transition: opacity .2s; }
  .OT_root:hover > .OT_mode-auto, .OT_root:focus-within > .OT_mode-auto, .OT_mute.OT_active.OT_mode-auto { opacity: 1; }
  .OT_audio-level-meter { position: absolute; right: 10px; top: 10px; width: 24px; height: 24px; overflow: hidden; border-radius: 50%;
    background: #fff3; }
  .OT_audio-level-meter.OT_mode-auto { display: none; }
  .OT_audio-only .OT_audio-level-meter.OT_mode-auto { display: block; }
  .OT_audio-level-meter__value { position: absolute; inset: 0; border-radius: 50%; background: #4ade80; transform: scale(0); }
  .OT_archiving-off { display: none; }
  .OT_video-disabled-indicator, .OT_audio-blocked { position: absolute; left: 50%; bottom: 50%; max-width: 90%; padding: 6px 12px;
    border: 0; border-radius: 6px; background: #000c; color: #fff; font: inherit; transform: translate(-50%, 50%); }
  .OT_audio-blocked { cursor: pointer; }
}`;

let isAdded = false;

/** Adds the rules to the page. Pages with a content security policy may forbid style elements, but not these style sheets. */
export function addStyle() {
  if (isAdded || typeof CSSStyleSheet !== 'function' || !document.adoptedStyleSheets) return;
  isAdded = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
