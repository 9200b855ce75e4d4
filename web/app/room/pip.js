// Picture in Picture of the person who is large or speaks. Browsers open it only on a click, but let it move to another video.

/** @param {HTMLVideoElement | null} video */
const mayFloat = (video) => document.pictureInPictureEnabled && video !== null && video.readyState > 0 && !video.disablePictureInPicture;

/** Whether this browser has Picture in Picture for pages. */
export const hasPip = () => Boolean(document.pictureInPictureEnabled);

/** @param {HTMLVideoElement | null} video */
export function togglePip(video) {
  if (document.pictureInPictureElement) document.exitPictureInPicture().catch(() => {});
  else if (mayFloat(video)) video?.requestPictureInPicture().catch(() => {}); // The user closed it at once.
}

/**
 * Moves an open window to another video.
 * @param {HTMLVideoElement | null} video
 */
export function followInPip(video) {
  const current = document.pictureInPictureElement;
  if (current && current !== video && mayFloat(video)) video?.requestPictureInPicture().catch(() => {});
}
