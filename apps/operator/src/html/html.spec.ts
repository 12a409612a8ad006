import { html, type Part } from './html';

it('escapes every value that is not markup', () => {
  const evil = `<script>alert("1")</script>&'`;
  const list: Part[] = [evil, html`<b>${evil}</b>`, undefined, false, 0];
  expect(html`<p title="${evil}">${list}</p>`.text).toBe(
    '<p title="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;">&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;' +
      '<b>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;</b>0</p>',
  );
});
