// Picture in Picture for the large tile or the active speaker. Browsers open it only on a click. Afterwards, the page may show
// another video in the same window.

/** @param {HTMLVideoElement | null} video */
const mayFloat = (video) => document.pictureInPictureEnabled && video !== null && video.readyState > 0 && !video.disablePictureInPicture;

/** Returns whether this browser lets pages use Picture in Picture. */
export const hasPip = () => Boolean(document.pictureInPictureEnabled);

/** @param {HTMLVideoElement | null} video */
export function togglePip(video) {
  if (document.pictureInPictureElement) document.exitPictureInPicture().catch(() => {});
  else if (mayFloat(video)) video?.requestPictureInPicture().catch(() => {}); // Rejects if closed at once.
}

/**
 * Switches an open Picture in Picture window to another video.
 * @param {HTMLVideoElement | null} video
 */
export function followInPip(video) {
  const current = document.pictureInPictureElement;
  if (current && current !== video && mayFloat(video)) video?.requestPictureInPicture().catch(() => {});
}
