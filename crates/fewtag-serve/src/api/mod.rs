//! The routes, and what every request passes through.
//!
//! ```text
//! request id ─▶ log, trace ─▶ metrics, concurrency ─▶ panics ─▶ host, origin ─▶ route ─▶ key ─▶ handler
//! ```
//!
//! What a route asks of a key is said by the list it stands in: [`open`], [`reading`] or [`changing`].

#![expect(clippy::missing_errors_doc, reason = "what a handler refuses stands in its `responses`")]

mod body;
pub mod domains;
pub mod files;
pub mod label_studio;
pub mod status;
pub mod tag;
pub mod tune;

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::{Modify, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use crate::auth::Scope;
use crate::error::{ApiError, Code};
use crate::host::Origin;
use crate::metrics::{self, Asked};
use crate::{App, web};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "fewtag",
        description = "Few-shot sequence labelling: a handful of labelled sentences in, tagged text out. \
                       Offsets count Unicode scalar values.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Key),
)]
struct Document;

struct Key;

impl Modify for Key {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
    }
}

/// What anybody may see: that the server lives.
fn open() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(status::health)).routes(routes!(status::ready))
}

/// What a key of any scope opens: it changes nothing that is kept.
fn reading() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tag::tag))
        .routes(routes!(domains::list))
        .routes(routes!(domains::read))
        .routes(routes!(files::export))
        .routes(routes!(tag::tag_domain))
        .routes(routes!(tag::check_domain))
        .routes(routes!(tune::read))
        .routes(routes!(label_studio::predict))
        .routes(routes!(label_studio::setup))
        .routes(routes!(status::metrics))
}

/// What a full key opens only.
fn changing() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(domains::create))
        .routes(routes!(domains::replace, domains::delete))
        .routes(routes!(domains::declare_labels))
        .routes(routes!(domains::add_examples))
        .routes(routes!(domains::replace_example, domains::delete_example))
        .routes(routes!(files::import))
        .routes(routes!(tune::start, tune::cancel))
        .routes(routes!(tune::undo))
        .routes(routes!(label_studio::webhook))
}

/// The routes that the document describes; `guarded` puts a guard before those that want a key.
fn described(
    guarded: impl Fn(OpenApiRouter<App>, Scope) -> OpenApiRouter<App>,
) -> OpenApiRouter<App> {
    let scoped = |routes, scope| guarded(stated(routes, Some(scope)), scope);
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(stated(open(), None))
        .merge(scoped(reading(), Scope::Read))
        .merge(scoped(changing(), Scope::Full))
}

/// Says in the document which key the operations want: none, or none on a server without keys.
fn stated(mut routes: OpenApiRouter<App>, scope: Option<Scope>) -> OpenApiRouter<App> {
    let none = SecurityRequirement::default();
    let key = scope.map(|scope| SecurityRequirement::new("key", [scope.name()]));
    let security: Vec<_> = key.into_iter().chain([none]).collect();
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.security = Some(security.clone());
        }
    }
    routes
}

/// The `OpenAPI` document, generated from the code.
#[must_use]
pub fn openapi() -> OpenApi {
    described(|routes, _| routes).into_openapi()
}

/// The whole server as a service.
pub fn router(app: App) -> Router {
    let guarded = |routes: OpenApiRouter<App>, scope| {
        let state = (App::clone(&app), scope);
        routes.route_layer(middleware::from_fn_with_state(state, crate::auth::check))
    };
    let (routes, document) = described(guarded).split_for_parts();
    // No badge: it would be fetched from elsewhere.
    let page = utoipa_swagger_ui::Config::default().validator_url("none");
    let request_id = HeaderName::from_static("x-request-id");
    routes
        // Open as well: the documentation, and the page that asks for a key.
        .merge(SwaggerUi::new("/docs").url("/openapi.json", document).config(page))
        .route("/", get(web::index))
        .route("/assets/{name}", get(web::asset))
        .fallback(async || ApiError::new(Code::NotFound, "there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            ApiError::new(Code::MethodNotAllowed, "this address does not take this method")
        })
        .layer(cors(&app.config.origins))
        .layer(middleware::from_fn_with_state(App::clone(&app), crate::host::check))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(App::clone(&app), count))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .layer(SetRequestIdLayer::new(request_id, MakeRequestUuid))
        .layer(SetResponseHeaderLayer::overriding(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .with_state(app)
}

/// Pages of these origins may call; with none, browsers let no other page read an answer.
fn cors(origins: &[Origin]) -> CorsLayer {
    let value = |origin: &Origin| -> HeaderValue {
        origin.to_string().parse().expect("an origin is visible ASCII")
    };
    let origins: Vec<HeaderValue> = origins.iter().map(value).collect();
    if origins.is_empty() {
        return CorsLayer::new();
    }
    let key = HeaderName::from_static("x-api-key");
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_MATCH, key])
        .expose_headers([header::ETAG, header::RETRY_AFTER])
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request failed by a fault of ours");
    ApiError::new(Code::Internal, "the server failed on this request; its log says more")
        .into_response()
}

fn span(request: &Request) -> tracing::Span {
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    let (method, path) = (request.method(), request.uri().path());
    tracing::info_span!("request", id, %method, path)
}

/// Counts requests and their times, and refuses those beyond the limit.
async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    /// Counts down also when the client goes away.
    struct InFlight(App);
    impl Drop for InFlight {
        fn drop(&mut self) {
            self.0.metrics.end();
        }
    }
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let method = metrics::method(request.method());
    let n = app.metrics.begin();
    let _in_flight = InFlight(App::clone(&app));
    let response = if usize::try_from(n).is_ok_and(|n| n > app.config.limits.concurrency) {
        let message = "too many requests are being answered: try again later";
        ApiError::new(Code::TooManyRequests, message).retry_after(1).into_response()
    } else {
        next.run(request).await
    };
    let status = response.status().as_u16();
    app.metrics.answered(&Asked { method, route, status }, start.elapsed());
    tracing::info!(status, ms = start.elapsed().as_millis() as u64, "answered");
    response
}
