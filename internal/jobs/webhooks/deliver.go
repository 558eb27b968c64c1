package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/statestore"
)

// Headers of a request, as the hosted service has them.
const (
	idHeader        = "Pulumi-Webhook-Id"
	kindHeader      = "Pulumi-Webhook-Kind"
	signatureHeader = "Pulumi-Webhook-Signature"
)

const (
	// maxAnswer limits how much of an answer is read and kept, maxAnswered the same for its headers.
	maxAnswer, maxAnswered = 4 << 10, 4 << 10
	// longestWait is the longest pause that a receiver can ask for.
	longestWait = time.Hour
	// askedWithin is how long ago a delivery may have been asked for: longer than its attempts take together.
	askedWithin = 25 * time.Hour
)

// Activities has the activity that sends events; register it as a whole.
type Activities struct {
	Store   *statestore.Store
	Network Network
}

// DeliverEvent sends an event to a webhook and logs what became of it. A webhook that was removed or paused meanwhile
// is not sent anything, and neither is what was asked for long ago. An attempt that failed is an error, unless only
// one is to be made. It may run more than once: an event that was sent since it was asked for is not sent again, and
// the receiver knows one that was by its id.
func (a *Activities) DeliverEvent(
	ctx context.Context, in deployments.DeliverInput,
) (deployments.WebhookDelivery, error) {
	hook, err := a.Store.Jobs.Webhook(ctx, in.Webhook)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound, err == nil && hook.Paused && !in.Once:
		return deployments.WebhookDelivery{}, nil
	case err != nil:
		return deployments.WebhookDelivery{}, failure.Of(err)
	case time.Since(in.Asked) > askedWithin:
		return deployments.WebhookDelivery{}, temporal.NewNonRetryableApplicationError("the event was to be sent at "+
			in.Asked.Format(time.RFC3339), string(deployments.CodeInvalid), nil)
	}
	sent, err := a.Store.Jobs.Delivery(ctx, in.Webhook, in.Event)
	if err != nil || sent.Error == "" && sent.Sent.After(in.Asked) {
		return sent, failure.Of(err)
	}
	if in.Payload == "" {
		if in.Payload, err = Payload(hook.Format, in.Event); err != nil {
			return deployments.WebhookDelivery{}, failure.Of(err)
		}
	}
	d := deployments.WebhookDelivery{ID: in.Event.ID, Event: in.Event.Name, Kind: in.Event.Kind, At: in.Event.At,
		Sent: time.Now().UTC(), Attempt: int(activity.GetInfo(ctx).Attempt), URL: hook.URL, Payload: in.Payload}
	pause, failed := a.send(ctx, hook, &d)
	d.Took = time.Since(d.Sent)
	if failed != nil {
		d.Error = safetext.Line(failed.Error())
	}
	if err := a.Store.Jobs.PutDelivery(ctx, in.Webhook, d); err != nil {
		return d, failure.Of(err)
	}
	if failed == nil || in.Once {
		return d, nil
	}
	return d, retryable(failed, pause)
}

// retryable makes the error of an attempt one for Temporal: a receiver that must not be sent to, or that says the
// request itself is wrong, is not asked again.
func retryable(failed error, pause time.Duration) error {
	const kind = string(deployments.CodeUnavailable)
	var answer *answerError
	var refused *outbound.RefusedError
	if errors.As(failed, &refused) || errors.As(failed, &answer) && answer.final() {
		return temporal.NewNonRetryableApplicationError(failed.Error(), kind, nil)
	}
	return temporal.NewApplicationErrorWithOptions(failed.Error(), kind, temporal.ApplicationErrorOptions{
		NextRetryDelay: pause})
}

// answerError is the error of an answer that is not a success.
type answerError struct{ status int }

func (e *answerError) Error() string {
	text := fmt.Sprintf("the receiver answered %d %s", e.status, http.StatusText(e.status))
	if e.status/100 == 3 {
		text += ": redirects are not followed; change the URL of the webhook"
	}
	return text
}

// final reports whether the same request would be answered the same.
func (e *answerError) final() bool {
	return e.status < 500 && !slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusTooManyRequests}, e.status)
}

// send makes one attempt, and returns for how long the receiver wants to be left alone.
func (a *Activities) send(
	ctx context.Context, hook deployments.Webhook, d *deployments.WebhookDelivery,
) (pause time.Duration, err error) {
	to, err := a.Network.guard().Parse(hook.URL)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(d.Payload))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "deployctl")
	r.Header.Set(idHeader, d.ID)
	r.Header.Set(kindHeader, d.Kind)
	d.Headers = written(r.Header)
	if hook.Secret != "" {
		r.Header.Set(signatureHeader, Sign(hook.Secret, d.Payload))
	}
	answer, err := a.Network.client().Do(r)
	if err != nil {
		if named := (*url.Error)(nil); errors.As(err, &named) {
			err = named.Err // without the URL, which may be secret
		}
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what was read of it counts
	d.Status, d.Answer = answer.StatusCode, safetext.Text(strings.ToValidUTF8(string(body), "�"))
	if d.Answered = written(answer.Header); len(d.Answered) > maxAnswered {
		d.Answered = strings.ToValidUTF8(d.Answered[:maxAnswered], "")
	}
	if answer.StatusCode/100 != 2 {
		return pauseOf(answer.Header), &answerError{answer.StatusCode}
	}
	return 0, nil
}

// Sign returns the signature of a payload: its HMAC-SHA256, in hexadecimal digits.
func Sign(secret, payload string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(payload))
	return hex.EncodeToString(mac.Sum(nil))
}

// pauseOf returns the pause that an answer asks for in seconds; 0 when it asks for none.
func pauseOf(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// written writes headers one on a line.
func written(h http.Header) string {
	var text strings.Builder
	for name := range h {
		for _, value := range h[name] {
			text.WriteString(name + ": " + safetext.Line(strings.ToValidUTF8(value, "�")) + "\n")
		}
	}
	lines := strings.SplitAfter(text.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}
