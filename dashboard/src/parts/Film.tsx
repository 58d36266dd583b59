import { useEffect, useRef, useState } from "preact/hooks";
import type { Media } from "../api/names.ts";

const FEW_PIXELS = 160; // a picture of fewer across shows its pixels instead of blur

/** A picture or film out of a run, at `second` where the page says so. What is not there any more says so. */
export function Film({
  media,
  second,
  onSecond,
  playing,
  rate = 1,
  bare = false,
}: {
  media: Media;
  second?: number;
  onSecond?: (second: number, of: number) => void;
  playing?: boolean;
  rate?: number;
  bare?: boolean;
}) {
  const video = useRef<HTMLVideoElement>(null);
  const [coarse, setCoarse] = useState(false);
  const [inHand, setInHand] = useState(false); // its controls hide the picture: they come with the pointer or the focus
  useEffect(() => {
    const film = video.current;
    if (!film || second === undefined || !Number.isFinite(second)) return;
    const off = Math.abs(film.currentTime - second);
    if (off > (film.paused ? 0.04 : 0.3 * film.playbackRate)) film.currentTime = second; // playing, it may lag a little
  }, [second]);
  useEffect(() => {
    const film = video.current;
    if (!film) return;
    film.playbackRate = rate;
    if (playing === true) void film.play().catch(() => undefined);
    else if (playing === false) film.pause();
  }, [playing, rate]);
  if (!media.there || media.url === null) return <p class="film gone">The file {media.path} is not there any more.</p>;
  const name = `${media.key}${media.episode_id === null ? "" : `, episode ${media.episode_id}`}`;
  // Without ffmpeg films are written as GIF, which no <video> plays.
  if (media.kind !== "video" || /\.(gif|png)$/i.test(media.url))
    return (
      <img
        class={coarse ? "film coarse" : "film"}
        src={media.url}
        alt={name}
        loading="lazy"
        onLoad={(event) => setCoarse(event.currentTarget.naturalWidth < FEW_PIXELS)}
      />
    );
  return (
    <video
      ref={video}
      class="film"
      src={media.url}
      muted
      playsInline
      tabIndex={0}
      controls={!bare && inHand}
      preload="metadata"
      aria-label={`Film of ${name}`}
      onPointerEnter={() => setInHand(true)}
      onPointerLeave={() => setInHand(false)}
      onFocus={() => setInHand(true)}
      onBlur={() => setInHand(false)}
      onTimeUpdate={(event) => onSecond?.(event.currentTarget.currentTime, event.currentTarget.duration)}
      onLoadedMetadata={(event) => onSecond?.(event.currentTarget.currentTime, event.currentTarget.duration)}
    />
  );
}
