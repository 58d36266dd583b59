/** A name that was shortened beside others: the whole of it at a touch of the pointer, and for those who hear it. */
export const Named = ({ text, name }: { text: string; name: string }) =>
  text === name ? (
    <span class="named">{text}</span>
  ) : (
    <span class="named" role="img" aria-label={name} title={name}>
      {text}
    </span>
  );
