import { useEffect, useRef, useState } from "preact/hooks";
import type { Media } from "../api/names.ts";

const FEW_PIXELS = 160; // a picture of fewer across shows its pixels instead of blur

/** A picture or video out of a run, at `second` where the page says so. What is not there any more says so. */
export function Video({
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
  const element = useRef<HTMLVideoElement>(null);
  const [coarse, setCoarse] = useState(false);
  const [inHand, setInHand] = useState(false); // its controls hide the picture: they come with the pointer or the focus
  useEffect(() => {
    const it = element.current;
    if (!it || second === undefined || !Number.isFinite(second)) return;
    const off = Math.abs(it.currentTime - second);
    if (off > (it.paused ? 0.04 : 0.3 * it.playbackRate)) it.currentTime = second; // playing, it may lag a little
  }, [second]);
  useEffect(() => {
    const it = element.current;
    if (!it) return;
    it.playbackRate = rate;
    if (playing === true) void it.play().catch(() => undefined);
    else if (playing === false) it.pause();
  }, [playing, rate]);
  if (!media.there || media.url === null) return <p class="video gone">The file {media.path} is not there any more.</p>;
  const name = `${media.key}${media.episode_id === null ? "" : `, episode ${media.episode_id}`}`;
  // Without ffmpeg videos are written as GIF, which no <video> plays.
  if (media.kind !== "video" || /\.(gif|png)$/i.test(media.url))
    return (
      <img
        class={coarse ? "video coarse" : "video"}
        src={media.url}
        alt={name}
        loading="lazy"
        onLoad={(event) => setCoarse(event.currentTarget.naturalWidth < FEW_PIXELS)}
      />
    );
  return (
    <video
      ref={element}
      class="video"
      src={media.url}
      muted
      playsInline
      tabIndex={0}
      controls={!bare && inHand}
      preload="metadata"
      aria-label={`Video of ${name}`}
      onPointerEnter={() => setInHand(true)}
      onPointerLeave={() => setInHand(false)}
      onFocus={() => setInHand(true)}
      onBlur={() => setInHand(false)}
      onTimeUpdate={(event) => onSecond?.(event.currentTarget.currentTime, event.currentTarget.duration)}
      onLoadedMetadata={(event) => onSecond?.(event.currentTarget.currentTime, event.currentTarget.duration)}
    />
  );
}
