// The look of the default interface. A page's own rules for the `OT_` classes have precedence, because these rules are in a layer.

const rules = `@layer opentok {
  .OT_root { background: #000; color: #fff; font: 14px/1.4 system-ui, sans-serif; }
  .OT_root[hidden], .OT_root [hidden], .OT_mode-off { display: none !important; }
  .OT_loading:not(.OT_audio-only) > .OT_widget-container::after { content: ''; position: absolute; inset: 0; width: 28px; height: 28px;
    margin: auto; border: 3px solid #fff4; border-top-color: #fff; border-radius: 50%; animation: OT_turn 1s linear infinite; }
  .OT_video-poster { position: absolute; inset: 0; display: none; box-sizing: border-box; padding: 20px 0 0; container-type: size;
    place-items: center; overflow: hidden; background: #2b3038 center / contain no-repeat; color: #e6e9ee; }
  .OT_audio-only .OT_video-poster { display: grid; }
  .OT_video-poster.OT_has-image > * { display: none; }
  .OT_video-poster svg { width: 45%; height: 45%; fill: #98a1b0; }
  .OT_initials { display: grid; place-items: center; width: 96px; height: 96px; border-radius: 50%; overflow: hidden; background: #4a5260;
    font-size: 36px; line-height: 1; white-space: nowrap; }
  @supports (width: 1cqmin) { .OT_initials { width: 50cqmin; height: 50cqmin; font-size: 19cqmin; } }
  .OT_name { position: absolute; inset: 0 0 auto; margin: 0; padding: 6px 44px 6px 10px; overflow: hidden; background: #000a;
    font: inherit; text-overflow: ellipsis; white-space: nowrap; }
  .OT_mute, .OT_audio-blocked { position: absolute; bottom: 6px; border: 1px solid transparent; background: #000b; color: #fff;
    cursor: pointer; }
  .OT_mute { right: 6px; width: 36px; height: 36px; padding: 6px; border-radius: 50%; }
  .OT_mute svg { display: block; width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; }
  .OT_mute .OT_slash { display: none; }
  .OT_mute.OT_active { background: #b3261e; }
  .OT_mute.OT_active .OT_slash { display: inline; }
  .OT_audio-blocked { left: 6px; padding: 6px 12px; border-radius: 18px; font: inherit; white-space: nowrap; }
  .OT_mute:focus-visible, .OT_audio-blocked:focus-visible { outline: 2px solid #fff; outline-offset: 1px; box-shadow: 0 0 0 5px #000; }
  .OT_name.OT_mode-auto, .OT_mute.OT_mode-auto { opacity: 0; transition: opacity .2s; }
  .OT_root:not(.OT_loading) > .OT_name.OT_mode-auto { animation: OT_first-shown 6s; }
  .OT_root:hover > .OT_mode-auto, .OT_root:focus-within > .OT_mode-auto, .OT_mute.OT_active.OT_mode-auto { opacity: 1; }
  @media (hover: none) { .OT_name.OT_mode-auto, .OT_mute.OT_mode-auto { opacity: 1; } }
  @media (pointer: coarse) { .OT_mute { width: 44px; height: 44px; padding: 10px; border-radius: 22px; } }
  .OT_audio-level-meter { position: absolute; right: 14px; top: 7px; box-sizing: border-box; width: 18px; height: 18px; overflow: hidden;
    border: 2px solid #fff; border-radius: 50%; background: #000a; }
  .OT_audio-level-meter.OT_mode-auto { display: none; }
  .OT_audio-only > .OT_audio-level-meter.OT_mode-auto { display: block; }
  .OT_audio-level-meter__value { position: absolute; inset: 0; border-radius: 50%; background: #4ade80; transform: scale(0); }
  .OT_archiving-off { display: none; }
  .OT_archiving-on { position: absolute; left: 6px; top: 6px; padding: 2px 8px 2px 22px; border-radius: 9px; background: #000a; }
  .OT_archiving-on::before { content: ""; position: absolute; left: 7px; top: calc(50% - 5px); width: 10px; height: 10px; border-radius: 50%; background: #e5484d; }
  .OT_video-disabled-indicator { position: absolute; left: 6px; bottom: 6px; max-width: calc(100% - 60px); box-sizing: border-box;
    padding: 4px 10px; border-radius: 6px; background: #000c; line-height: 1.25; }
  .OT_video-disabled-indicator:empty { padding: 0; }
  .OT_video-disabled-indicator:not(:empty):not(.OT_mode-off) ~ .OT_audio-blocked { bottom: auto; top: 40px; }
  .OT_upgrade { margin: 16px; padding: 16px; border-radius: 8px; background: #b3261e; color: #fff; font: 16px/1.4 system-ui, sans-serif; }
  @keyframes OT_first-shown { 0%, 90% { opacity: 1; } }
  @keyframes OT_turn { to { transform: rotate(1turn); } }
  @media (prefers-reduced-motion: reduce) { .OT_root *, .OT_root *::after { animation: none !important; transition: none !important; } }
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
